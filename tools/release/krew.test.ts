/**
 * Tests the plugin for Krew: kubectl can run the program in the archive, and the manifest has the fields that Krew
 * requires.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { run } from '../controlplane/run.ts';
import { krewArchive, krewManifest } from './krew.ts';

const BINARY = Buffer.from('#!/bin/sh\necho "refit $1"\n');
const archive = krewArchive('amd64', BINARY, Buffer.from('licence'), 0);

test('the archive holds a program of the name that kubectl looks for', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-krew-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  await writeFile(join(directory, archive.name), archive.content);
  await run('tar', ['-xzf', archive.name], { cwd: directory });
  expect(await run(join(directory, 'kubectl-refit'), ['status'])).toEqual({
    ok: true,
    stdout: 'refit status\n',
    stderr: '',
  });
});

test('the archive is the same for the same content', () => {
  expect(
    krewArchive('amd64', BINARY, Buffer.from('licence'), 0).content.equals(archive.content),
  ).toBe(true);
});

test('the manifest has what Krew demands of each platform', () => {
  const { metadata, spec } = parse(krewManifest('1.2.3', [archive])) as {
    metadata: { name: string };
    spec: { version: string; shortDescription: string; platforms: Record<string, unknown>[] };
  };
  expect([metadata.name, spec.version]).toEqual(['refit', 'v1.2.3']);
  // Krew's own limit.
  expect(spec.shortDescription.length).toBeLessThanOrEqual(50);
  expect(spec.platforms).toEqual([
    {
      selector: { matchLabels: { os: 'linux', arch: 'amd64' } },
      uri: `RELEASE_URL/${archive.name}`,
      sha256: createHash('sha256').update(archive.content).digest('hex'),
      files: [
        { from: 'kubectl-refit', to: '.' },
        { from: 'LICENSE', to: '.' },
      ],
      bin: 'kubectl-refit',
    },
  ]);
});

test.each([
  ['', undefined],
  ['https://example.com/refit', 'https://example.com/refit'],
])('with the homepage "%s"', (homepage, named) => {
  const { spec } = parse(krewManifest('1.2.3', [archive], homepage)) as {
    spec: { homepage?: string };
  };
  expect(spec.homepage).toBe(named);
});
