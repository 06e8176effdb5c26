/** Builds small programs of the proofs. */
import { dirname } from 'node:path';
import { type BuildOptions, cacheDirectory } from '../../../tools/controlplane/build.ts';
import { run } from '../../../tools/controlplane/run.ts';
import { findToolchain } from '../../../tools/controlplane/toolchain.ts';
import { must } from '../../../tools/release/commands.ts';

/**
 * Builds a program that has one source file and no dependencies. The linker sets the variables of the program that are
 * in `stamps`.
 */
export async function buildGoFile(
  source: string,
  output: string,
  { environment, log, abort }: BuildOptions,
  stamps: Readonly<Record<string, string>> = {},
): Promise<void> {
  const toolchain = await findToolchain({ cache: cacheDirectory(environment), run, log, abort });
  const variables = Object.entries(stamps).map(([name, value]) => `-X main.${name}=${value}`);
  const flags = ['-s', '-w', ...variables].join(' ');
  await must(toolchain.go, ['build', '-trimpath', '-ldflags', flags, '-o', output, source], {
    cwd: dirname(source),
    environment: { ...toolchain.environment, CGO_ENABLED: '0', GOWORK: 'off' },
    abort,
  });
}
