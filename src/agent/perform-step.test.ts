/**
 * Tests a roll-back if the file at the target path cannot be replaced. Also tests that a download on a full disk
 * reports which kept binary was removed to make room, and that a trial run names the release to which a wrong hash
 * belongs.
 */
import { hash } from 'node:crypto';
import * as fsPromises from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { journalAt } from '../../test/support/builders/agent-situations.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { defined } from '../util/json.ts';
import { silentLogger } from '../util/log.ts';
import { type EffectTools, perform } from './perform-step.ts';
import { upgradePathsOf } from './state/state-directory.ts';
import { fileTrust } from './state/trusted-path.ts';
import type { Step, StepOutcome } from './steps/step.ts';
import { journalAfter } from './transitions.ts';

const BACK: Step = { kind: 'roll-back', reason: 'the swap failed' };

/** Rolls back on a host where no file can be renamed to the binary, because the binary is mounted or immutable. */
async function rollBackTo(
  previous: string,
  other: Readonly<Record<string, unknown>> = {},
): Promise<StepOutcome> {
  const directory = await fsPromises.mkdtemp(join(tmpdir(), 'refit-perform-'));
  onTestFinished(async () => await fsPromises.rm(directory, { recursive: true }));
  const binary = join(directory, 'k0s');
  await fsPromises.writeFile(binary, 'old');
  await fsPromises.writeFile(`${binary}.previous`, previous);
  // The file that is left by a swap that was interrupted or that failed.
  await fsPromises.writeFile(`${binary}.new`, 'new');
  const rename = async (): Promise<never> =>
    await Promise.reject(new Error('EBUSY: resource busy or locked'));
  const files = { ...fsPromises, rename, ...(other['files'] as object | undefined) };
  const { work, ...journal } = journalAt('swappingBack');
  const clock = new FakeClock();
  const tools = {
    ...other,
    files,
    fileTrust,
    clock,
    random: () => 0.5,
    log: silentLogger,
    limits: {},
    stateDirectory: directory,
  };
  const stop = new AbortController().signal;
  const done = perform(
    BACK,
    { ...journal, work: { ...work, binary } },
    tools as unknown as EffectTools,
    stop,
  );
  const outcome = await clock.runUntil(done);
  expect((await fsPromises.readdir(directory)).toSorted()).toEqual(['k0s', 'k0s.previous']);
  return outcome;
}

test('what a swap did not change needs no roll-back, which would fail too', async () => {
  expect(await rollBackTo('old')).toEqual({ ok: true });
  expect(await rollBackTo('new')).toMatchObject({
    ok: false,
    reason: expect.stringContaining('EBUSY') as string,
  });
});

test('attributes that cannot be copied do not keep a roll-back from its end', async () => {
  const link = async (): Promise<never> =>
    await Promise.reject(Object.assign(new Error('EPERM: no hard links'), { code: 'EPERM' }));
  const copyAttributes = async (): Promise<never> =>
    await Promise.reject(new Error('cp: no room for attributes'));
  const files = { link, rename: fsPromises.rename };
  expect(await rollBackTo('new', { files, copyAttributes })).toEqual({ ok: true });
});

test('a download on a full disk tells which kept binary made room for it', async () => {
  const directory = await fsPromises.mkdtemp(join(tmpdir(), 'refit-perform-'));
  onTestFinished(async () => await fsPromises.rm(directory, { recursive: true }));
  let isKept = true;
  const kept = {
    facts: async () => await Promise.resolve({ version: 'v0' }),
    sacrifice: async () => {
      const was = isKept;
      isKept = false;
      return await Promise.resolve(was);
    },
  };
  const full = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
  const makePrivate = async (): Promise<never> =>
    await Promise.reject(isKept ? full : new Error('the download begins'));
  const clock = new FakeClock();
  const { work, ...journal } = journalAt('started');
  const tools = {
    kept,
    files: fsPromises,
    fileTrust: { ...fileTrust, makePrivate },
    clock,
    random: () => 0.5,
    log: silentLogger,
    limits: {},
    stateDirectory: directory,
  };
  const done = perform(
    { kind: 'download' },
    { ...journal, work: { ...work, binary: join(directory, 'k0s') } },
    tools as unknown as EffectTools,
    new AbortController().signal,
  );
  const outcome = await clock.runUntil(done);
  expect(outcome).toMatchObject({ ok: false, reason: 'the download begins', removed: 'v0' });
  const after = journalAfter({ kind: 'download' }, journalAt('started'), outcome, 0);
  expect(after).toMatchObject({ phase: 'failed', removed: 'v0' });
});

const OLD_RELEASE = '#!/bin/sh\necho v0.9.0\n';
const OLD_HASH = hash('sha256', OLD_RELEASE);

test.each([
  [
    'names the kept release whose hash the plan gives, because nothing was downloaded then',
    { version: 'v0.9.0', sha256: OLD_HASH },
    { sha256: OLD_HASH.toUpperCase() },
    '. The sha256 in the plan is that of v0.9.0, which this host keeps for a roll-back, so nothing was downloaded; correct the sha256',
  ],
  [
    'names the release that was downloaded if the host keeps another one',
    { version: 'v0.8.0', sha256: 'c'.repeat(64) },
    { sha256: OLD_HASH },
    '. The sha256 in the plan is that of v0.9.0; correct the sha256 or the version',
  ],
  [
    'says nothing of a kept file that somebody removed',
    { version: 'v0.9.0', sha256: OLD_HASH, gone: 'Expired' },
    { sha256: OLD_HASH },
    '. The sha256 in the plan is that of v0.9.0; correct the sha256 or the version',
  ],
  [
    'names no hash if the plan gives none',
    { version: 'v0.9.0', sha256: OLD_HASH },
    { sha256: undefined },
    '',
  ],
])('the reason of a trial run with another version %s', async (_name, facts, given, cause) => {
  const directory = await fsPromises.mkdtemp(join(tmpdir(), 'refit-perform-'));
  onTestFinished(async () => await fsPromises.rm(directory, { recursive: true }));
  const { work, ...journal } = journalAt('downloaded');
  const binary = join(directory, 'k0s');
  const { staged } = upgradePathsOf(binary);
  await fsPromises.mkdir(dirname(staged), { recursive: true });
  await fsPromises.writeFile(staged, OLD_RELEASE, { mode: 0o755 });
  const { sha256: _sha256, ...command } = work.signal.command;
  const signal = { ...work.signal, command: { ...command, ...defined(given) } };
  const tools = {
    kept: { facts: async () => await Promise.resolve(facts) },
    files: fsPromises,
    fileTrust,
    clock: new FakeClock(),
    log: silentLogger,
    limits: {},
    stateDirectory: directory,
  };
  const outcome = await perform(
    { kind: 'trial-run' },
    { ...journal, work: { ...work, binary, signal } },
    tools as unknown as EffectTools,
    new AbortController().signal,
  );
  const reason = `trial run of the new binary: it reports version "v0.9.0" instead of ${command.version}${cause}`;
  expect(outcome).toMatchObject({ ok: false, reason });
});
