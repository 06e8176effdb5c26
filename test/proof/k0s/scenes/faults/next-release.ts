/** The releases through which the scene goes. */
import type { Scene } from '../../scene.ts';

/** Returns the next of the releases that differ only in their version. */
export function after({ to, later }: Scene, version: string): string {
  const all = [to, ...later].map((release) => release.version);
  const next = all[all.indexOf(version) + 1];
  if (next === undefined) throw new Error(`there is no release after ${version}`);
  return next;
}
