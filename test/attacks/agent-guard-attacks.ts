/** The attack on each guard of the agent, by the name of the guard. */
import { DOWNLOAD_ATTACKS } from './agent-guard-attacks-downloads.ts';
import { FILE_ATTACKS } from './agent-guard-attacks-files.ts';
import { PROCESS_ATTACKS } from './agent-guard-attacks-processes.ts';
import { SSH_ATTACKS } from './agent-guard-attacks-ssh.ts';
import { STEP_ATTACKS } from './agent-guard-attacks-steps.ts';
import type { Attack } from './agent-guard-scenes.ts';

export const ATTACKS: Readonly<Record<string, Attack>> = {
  ...FILE_ATTACKS,
  ...STEP_ATTACKS,
  ...DOWNLOAD_ATTACKS,
  ...PROCESS_ATTACKS,
  ...SSH_ATTACKS,
};
