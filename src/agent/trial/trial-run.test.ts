/** Tests the trial run of a new binary, with real programs. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runTrial } from './trial-run.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-trial-'));
});
afterEach(async () => await rm(directory, { recursive: true }));

const sh = (script: string): string => `#!/bin/sh\n${script}\n`;

test.each([
  ['prints the version', sh('[ "$1" = version ] && echo v2'), 'v2', undefined],
  ['prints the version among other words', sh('echo "k0s v2 (abc)"'), 'v2', undefined],
  ['prints a version where any version will do', sh('echo v9'), undefined, undefined],
  ['prints another version', sh('echo v9'), 'v2', 'it reports version "v9" instead of v2'],
  [
    'prints a version that only begins alike',
    sh('echo v2.1'),
    'v2',
    'it reports version "v2.1" instead of v2',
  ],
  ['ends with an exit code', sh('echo broken >&2; exit 3'), 'v2', 'it ended with code 3 broken'],
  [
    'ends with an exit code where any version will do',
    sh('exit 1'),
    undefined,
    'it ended with code 1',
  ],
  ['hangs', sh('exec sleep 60'), 'v2', 'it did not end within 300 ms'],
  ['talks without end', sh('while :; do echo v2; done'), 'v2', 'it printed more than 65536 bytes'],
  ['is no program', 'garbage\0\x01', 'v2', ''],
])('the trial run of a binary that %s', async (name, content, version, problem) => {
  const binary = join(directory, 'k0s.tmp');
  await writeFile(binary, content, { mode: 0o755 });
  const timeoutMs = name === 'hangs' ? 300 : 30_000;
  const trial = runTrial({
    binary,
    sha256: undefined,
    timeoutMs,
    ...(version === undefined ? {} : { version }),
  });
  if (problem === undefined) await trial;
  else await expect(trial).rejects.toThrow(`trial run of the new binary: ${problem}`);
});

test('a program for another processor is named as such', async () => {
  const binary = join(directory, 'k0s.tmp');
  const [machine, found] = process.arch === 'arm64' ? [62, 'x86-64'] : [183, 'aarch64'];
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(machine, 18);
  await writeFile(binary, header, { mode: 0o755 });
  await expect(runTrial({ binary, sha256: undefined, timeoutMs: 30_000 })).rejects.toThrow(
    `trial run of the new binary: it is for another processor (${found}; this host is `,
  );
});
