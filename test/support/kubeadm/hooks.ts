/** Lets tests delay, lose or kill steps of a stand-in host. */
import { access, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { StandInHost } from '../../../sandbox/sshd/stand-in-host.ts';
import type { Run } from './suite.ts';

/** Lets the next script that contains `text` wait: before it runs, or with its answer after it ran. */
export async function holdAt(
  { root }: StandInHost,
  moment: 'before' | 'after',
  text: string,
): Promise<void> {
  await writeFile(join(root, `hooks/hold-${moment}`), text);
}

/** How the script of a step names it, within the quotes of the script around it. */
export function textOf(step: string): string {
  return String.raw`STEP='\''${step}'\''`;
}

/** Rejects at once where the run ends instead. */
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

/** What is held goes on. */
export async function release({ root }: StandInHost): Promise<void> {
  await rm(join(root, 'hooks/held'));
}

/** What is held never happened, or nobody learns of it; resolves when it is gone. */
export async function lose({ root }: StandInHost): Promise<void> {
  await rename(join(root, 'hooks/held'), join(root, 'hooks/lost'));
}

/** The next kubeadm on the host dies, once, between the two renames of this component's manifest. */
export async function cutOffWithout({ root }: StandInHost, component: string): Promise<void> {
  await writeFile(join(root, 'hooks/die-without', component), '');
}

/** No kubeadm, or no new kubelet, gets anywhere on the host until what is returned is called. */
export async function holdUp(
  { root }: StandInHost,
  program: 'kubeadm' | 'kubelet',
): Promise<() => Promise<void>> {
  const hook = join(root, `hooks/hold-${program}`);
  await writeFile(hook, '');
  return async () => await rm(hook);
}
