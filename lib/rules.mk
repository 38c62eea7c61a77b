# SPDX-License-Identifier: MIT
# Rules of Makefiles in directories beside lib/: C from the directory itself and from those beside it, into $(OBJ). Quiet;
# V=1 shows the commands.

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@echo "  $(1)	$(patsubst ../%,%,$@)")

$(OBJ)/%.o: %.c | $(OBJ)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# What lies beside the directory: lib/, wire/.
$(OBJ)/%.o: ../%.c | $(OBJ)/lib $(OBJ)/wire
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(OBJ) $(OBJ)/lib $(OBJ)/wire:
	$(Q)mkdir -p $@

-include $(wildcard $(OBJ)/*.d $(OBJ)/*/*.d)
