/** Shows a test that cannot run here as skipped, with its reason: a run without it must not look as if it had passed. */
import { spawnSync } from 'node:child_process';
import { test } from 'vitest';

export function leftOut(name: string, why: string): void {
  test(`${name}: left out, since ${why}`, (context) => context.skip(why));
}

/** The `test` of a file whose tests cannot run for the reason `why`: each is skipped and shows it. They run where it is undefined. */
export function testUnless(why: string | undefined): typeof test {
  if (why === undefined) return test;
  return test.extend('leftOut', { auto: true }, ({ skip }) => skip(why)) as typeof test;
}

/** Says which program of which Debian package is missing here; undefined where the program is there. */
export function whyNoProgram(program: string, debianPackage: string): string | undefined {
  const { status } = spawnSync('sh', ['-c', `command -v ${program}`]);
  if (status === 0) return undefined;
  return `${program} is not installed: Debian's package ${debianPackage} has it`;
}
