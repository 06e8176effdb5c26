/** The operator's namespaces. All machines of a part are inside, so they end with the first process of the namespaces. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { must } from '../../../tools/release/commands.ts';
import { NETWORK } from './machine.ts';

/** The address of the operator, which is also the gateway of the machines. */
export const OPERATOR = `${NETWORK}.1`;

const NAMESPACES = [
  '--net',
  '--mount',
  '--propagation',
  'private',
  '--pid',
  '--mount-proc',
  '--fork',
  '--kill-child',
];

/**
 * Runs a script of this project in new namespaces, and resolves when the script has ended. All machines that the script
 * started then end too, and their mounts and networks are removed.
 */
export async function runApart(
  script: string,
  args: readonly string[],
  abort: AbortSignal,
): Promise<void> {
  const words = [...NAMESPACES, process.execPath, script, ...args];
  const child = spawn('unshare', words, { stdio: ['ignore', 'inherit', 'inherit'] });
  const end = (): void => void child.kill('SIGKILL');
  abort.addEventListener('abort', end, { once: true });
  if (abort.aborted) end();
  await once(child, 'close');
  abort.throwIfAborted();
}

/**
 * Makes a network switch to which all machines are connected. It is in the network namespace of this process, and ends
 * with it. The operator has all the given addresses.
 */
export async function makeSwitch(addresses: readonly string[]): Promise<void> {
  await must('ip', ['link', 'set', 'lo', 'up']);
  await must('ip', ['link', 'add', 'machines', 'type', 'bridge']);
  for (const address of addresses)
    await must('ip', ['addr', 'add', `${address}/24`, 'dev', 'machines']);
  await must('ip', ['link', 'set', 'machines', 'up']);
}
