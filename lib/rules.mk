# SPDX-License-Identifier: MIT
# Rules for the Makefiles of directories beside lib/: they compile C files of the directory and of its neighbours into
# $(OBJ). Commands are shown only with V=1.

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@echo "  $(1)	$(patsubst ../%,%,$@)")

$(OBJ)/%.o: %.c | $(OBJ)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Sources in the neighbouring directories lib/ and wire/.
$(OBJ)/%.o: ../%.c | $(OBJ)/lib $(OBJ)/wire
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(OBJ) $(OBJ)/lib $(OBJ)/wire:
	$(Q)mkdir -p $@

-include $(wildcard $(OBJ)/*.d $(OBJ)/*/*.d)
