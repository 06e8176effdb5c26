/** Shows a test that cannot run here as skipped, with its reason: a run without it must not look as if it had passed. */
import { test } from 'vitest';

export function leftOut(name: string, why: string): void {
  test(`${name}: left out, since ${why}`, (context) => context.skip(why));
}
