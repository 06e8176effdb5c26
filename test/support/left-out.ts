/**
 * Marks a test that cannot run here as skipped, with the reason. Otherwise the run would look as if the test had
 * passed.
 */
import { spawnSync } from 'node:child_process';
import { test } from 'vitest';

export function leftOut(name: string, why: string): void {
  test(`${name}: left out, since ${why}`, (context) => context.skip(why));
}

/**
 * The `test` function of a file whose tests cannot run for the reason `why`. Each test is skipped and shows the reason.
 * The tests run if `why` is undefined.
 */
export function testUnless(why: string | undefined): typeof test {
  if (why === undefined) return test;
  return test.extend('leftOut', { auto: true }, ({ skip }) => skip(why)) as typeof test;
}

/** Returns which program of which Debian package is missing here; undefined if the program exists. */
export function whyNoProgram(program: string, debianPackage: string): string | undefined {
  const { status } = spawnSync('sh', ['-c', `command -v ${program}`]);
  if (status === 0) return undefined;
  return `${program} is not installed: Debian's package ${debianPackage} has it`;
}
