/** Lets tests delay, lose or kill steps of a stand-in host. */
import { access, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { StandInHost } from '../../../sandbox/sshd/stand-in-host.ts';
import type { Run } from './suite.ts';

/** Delays the next script that contains `text`: before it runs, or after it has run and before its answer is sent. */
export async function holdAt(
  { root }: StandInHost,
  moment: 'before' | 'after',
  text: string,
): Promise<void> {
  await writeFile(join(root, `hooks/hold-${moment}`), text);
}

/**
 * Returns a text that the script of a step always contains: the assignment of the step's name. The quotes are escaped,
 * because this script is quoted in another script.
 */
export function textOf(step: string): string {
  return String.raw`STEP='\''${step}'\''`;
}

/** Waits until the script is held. Rejects at once if the run ends first. */
export async function isHeld(host: StandInHost, run: Run): Promise<void> {
  const held = vi.waitFor(async () => await access(join(host.root, 'hooks/held')), {
    timeout: 150_000,
    interval: 20,
  });
  const ended = run.ended.then((code) => {
    throw new Error(`it ended with ${code} before anything was held: ${run.stdout}${run.stderr}`);
  });
  await Promise.race([held, ended]);
}

/** Lets the script that is held continue. */
export async function release({ root }: StandInHost): Promise<void> {
  await rm(join(root, 'hooks/held'));
}

/**
 * Drops the script that is held, or its answer. If the script has not run yet, it never runs. If it has run, nobody
 * receives its answer. Resolves when that is done.
 */
export async function lose({ root }: StandInHost): Promise<void> {
  await rename(join(root, 'hooks/held'), join(root, 'hooks/lost'));
}

/** Lets the next kubeadm on the host die once, between the two renames of this component's manifest. */
export async function cutOffWithout({ root }: StandInHost, component: string): Promise<void> {
  await writeFile(join(root, 'hooks/die-without', component), '');
}

/** Blocks kubeadm, or a new kubelet, on the host until the returned function is called. */
export async function holdUp(
  { root }: StandInHost,
  program: 'kubeadm' | 'kubelet',
): Promise<() => Promise<void>> {
  const hook = join(root, `hooks/hold-${program}`);
  await writeFile(hook, '');
  return async () => await rm(hook);
}
