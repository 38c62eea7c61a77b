// SPDX-License-Identifier: MIT
// A congestion control's file for error texts: it is refused before anybody compiles it.
