/** The commands of `refit`, with all dialects. */
import { commandsOf } from '../../src/cmd/commands.ts';
import { MODULES } from '../../src/dialects/modules.ts';

export const COMMANDS = await commandsOf(MODULES);
