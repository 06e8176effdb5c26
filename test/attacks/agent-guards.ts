/**
 * Lists the guards in the TypeScript that decides what root runs, trusts or replaces. Each guard is one check. Its attack
 * succeeds as soon as the check is removed or weakened, and test/attacks/agent-guards.test.ts carries out both.
 */
import { DOWNLOAD_GUARDS } from './agent-guards-downloads.ts';
import { FILE_GUARDS } from './agent-guards-files.ts';
import { PROCESS_GUARDS } from './agent-guards-processes.ts';
import { SSH_GUARDS } from './agent-guards-ssh.ts';

export interface AgentGuard {
  readonly name: string;
  /** The path of the file below src. */
  readonly file: string;
  /** The check: an expression, or a property with its value. It follows the comment with the name of the guard. */
  readonly check: string;
  /** What replaces the expression or the value, by a description. */
  readonly planted: Readonly<Record<string, string>>;
}

export const AGENT_GUARDS: readonly AgentGuard[] = [
  ...FILE_GUARDS,
  ...DOWNLOAD_GUARDS,
  ...PROCESS_GUARDS,
  ...SSH_GUARDS,
];
