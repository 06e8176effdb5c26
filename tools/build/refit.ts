/** Builds the `refit` command as it ships: plain JavaScript in one directory, packages included. */
import { join } from 'node:path';
import { build } from 'rolldown';

const ENTRY = join(import.meta.dirname, '..', '..', 'src', 'cmd', 'refit.ts');

/**
 * Node's options for an agent, which runs on every node for months and computes very little. Without compilers (V8's lite
 * mode) it needs 6 MiB less, without the start-up snapshot another 4.
 */
export const AGENT_FLAGS = ['--lite-mode', '--no-node-snapshot'] as const;

/**
 * Empties `directory`, writes the command and its chunks into it, and resolves with the path of the command. Each
 * subcommand loads only its own chunks. Node can run the source, too, but its type stripper stays in memory: 40 MiB in
 * every agent.
 */
export async function buildRefit(directory: string): Promise<string> {
  const output = { dir: directory, format: 'esm', minify: true, cleanDir: true } as const;
  await build({ input: ENTRY, platform: 'node', logLevel: 'warn', output });
  return join(directory, 'refit.js');
}
