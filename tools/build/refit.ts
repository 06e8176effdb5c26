/** Owns making the `refit` command as it ships: plain JavaScript in one directory, with every package in it. */
import { join } from 'node:path';
import { build } from 'rolldown';

const ENTRY = join(import.meta.dirname, '..', '..', 'src', 'cmd', 'refit.ts');

/**
 * What Node is to be told when it runs an agent, which sits on every node for months and computes next to nothing: no
 * compilers (V8's lite mode) save 6 MiB of it, no start-up snapshot another 4.
 */
export const AGENT_FLAGS = ['--lite-mode', '--no-node-snapshot'] as const;

/**
 * Writes the command and its chunks into `directory`, which is emptied first; resolves with the path of the command. Each
 * subcommand loads only its own chunks. Node would run the source as well, but the compiler that takes the types out of it
 * stays in memory: 40 MiB in every agent.
 */
export async function buildRefit(directory: string): Promise<string> {
  const output = { dir: directory, format: 'esm', minify: true, cleanDir: true } as const;
  await build({ input: ENTRY, platform: 'node', logLevel: 'warn', output });
  return join(directory, 'refit.js');
}
