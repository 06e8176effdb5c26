/** Builds the program behind the stand-in kubeadm hosts into one file, which Node starts in two thirds of the time. */
import { join } from 'node:path';
import { build } from 'rolldown';

const SOURCE = join(import.meta.dirname, '..', '..', 'sandbox', 'sshd', 'stand-in.ts');

/** Empties `directory`, and resolves with the path of the file in it. */
export async function buildStandInHosts(directory: string): Promise<string> {
  const name = 'stand-in.mjs';
  const output = { dir: directory, format: 'esm', cleanDir: true, codeSplitting: false, entryFileNames: name } as const;
  await build({ input: SOURCE, platform: 'node', logLevel: 'warn', output });
  return join(directory, name);
}
