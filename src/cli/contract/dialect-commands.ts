/** The contract of the commands that only one dialect has. */
import type { CommandSpec } from '../program.ts';

/** The help lists all processes first. */
export interface DialectCommands {
  /** The commands that carry plans out until they are stopped. */
  readonly processes: readonly CommandSpec[];
  /** The commands for people. Those without a group control upgrades. */
  readonly tools: readonly CommandSpec[];
}
