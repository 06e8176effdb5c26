/** Owns the hooks of a stand-in host: what tests let wait, get lost or die there, at a moment that they choose. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StandInHost } from '../../tools/sshd/stand-in-host.ts';

/** Lets the next script that contains `text` wait: before it runs, or with its answer after it ran. */
export async function holdAt({ root }: StandInHost, moment: 'before' | 'after', text: string): Promise<void> {
  await writeFile(join(root, `hooks/hold-${moment}`), text);
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
