/** Builds small programs of the proofs. */
import { dirname } from 'node:path';
import { type BuildOptions, cacheDirectory } from '../../../tools/controlplane/build.ts';
import { run } from '../../../tools/controlplane/run.ts';
import { findToolchain } from '../../../tools/controlplane/toolchain.ts';
import { must } from '../../../tools/release/commands.ts';

/** Builds a program that has one source file and no dependencies. */
export async function buildGoFile(
  source: string,
  output: string,
  { environment, log, abort }: BuildOptions,
): Promise<void> {
  const toolchain = await findToolchain({ cache: cacheDirectory(environment), run, log, abort });
  await must(toolchain.go, ['build', '-trimpath', '-ldflags', '-s -w', '-o', output, source], {
    cwd: dirname(source),
    environment: { ...toolchain.environment, CGO_ENABLED: '0', GOWORK: 'off' },
    abort,
  });
}
