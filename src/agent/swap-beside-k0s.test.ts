/** Proves that only one agent swaps the binary if Refit's agent acts although k0s also runs its own agent. */
import { createHash } from 'node:crypto';
import * as fsPromises from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { after, journalAt } from '../../test/support/builders/agent-situations.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../util/log.ts';
import { type EffectTools, perform } from './perform-step.ts';
import { upgradePathsOf } from './state/state-directory.ts';
import { fileTrust } from './state/trusted-path.ts';
import type { Step, StepOutcome } from './steps/step.ts';

const SWAP: Step = { kind: 'swap', overtakes: true };

async function buildHost() {
  const directory = await fsPromises.mkdtemp(join(tmpdir(), 'refit-swap-'));
  onTestFinished(async () => await fsPromises.rm(directory, { recursive: true }));
  const binary = join(directory, 'k0s');
  const { staging, staged, previous } = upgradePathsOf(binary);
  await fsPromises.mkdir(staging, { mode: 0o700 });
  await fsPromises.writeFile(binary, 'old');
  await fsPromises.link(binary, previous);
  await fsPromises.writeFile(staged, 'new');
  const theirs = join(directory, 'k0s.tmp');
  await fsPromises.writeFile(theirs, 'new');
  return { directory, binary, theirs };
}

/** k0s's own agent replaces the binary as k0s does. Returns false if it assumes that the binary was replaced before. */
async function swapAsK0s(binary: string): Promise<boolean> {
  const directory = dirname(binary);
  const next = join(directory, 'k0s.new');
  const theirs = join(directory, 'k0s.tmp');
  const isAbsent = await fsPromises.access(theirs).then(
    () => false,
    () => true,
  );
  if (isAbsent) return false;
  await fsPromises.rm(next, { force: true });
  await fsPromises.link(theirs, next);
  await fsPromises.rename(next, binary);
  return true;
}

async function swap(step: Step, { directory, binary }: Record<'directory' | 'binary', string>) {
  const { work, ...journal } = journalAt('swapping');
  const sha256 = createHash('sha256').update('new').digest('hex');
  const { signal } = work;
  const command = { ...signal.command, sha256 };
  const clock = new FakeClock();
  const tools = {
    files: fsPromises,
    fileTrust,
    clock,
    random: () => 0.5,
    log: silentLogger,
    limits: {},
    stateDirectory: directory,
    copyAttributes: async () => await Promise.resolve(),
  };
  const done: Promise<StepOutcome> = perform(
    step,
    { ...journal, work: { ...work, binary, signal: { ...signal, command } } },
    tools as unknown as EffectTools,
    new AbortController().signal,
  );
  return await clock.runUntil(done);
}

test("after Refit's agent swapped, k0s's own agent finds nothing to put in place", async () => {
  const host = await buildHost();
  expect(await swap(SWAP, host)).toEqual({ ok: true });
  const { ino } = await fsPromises.stat(host.binary);
  expect(await swapAsK0s(host.binary)).toBe(false);
  expect((await fsPromises.stat(host.binary)).ino).toBe(ino);
  expect(await fsPromises.readFile(host.binary, 'utf8')).toBe('new');
});

test("after k0s's own agent swapped, Refit's agent leaves the binary as it is", async () => {
  const host = await buildHost();
  expect(await swapAsK0s(host.binary)).toBe(true);
  const { ino } = await fsPromises.stat(host.binary);
  expect(await swap(SWAP, host)).toEqual({ ok: true });
  expect((await fsPromises.stat(host.binary)).ino).toBe(ino);
});

test("where k0s's own agent cannot act, a swap leaves the files of others", async () => {
  const host = await buildHost();
  expect(await swap({ kind: 'swap' }, host)).toEqual({ ok: true });
  expect(await fsPromises.readFile(host.theirs, 'utf8')).toBe('new');
});

test("after the restart, Refit's agent takes the file away that k0s's own agent downloaded late", async () => {
  const host = await buildHost();
  expect(await swap(SWAP, host)).toEqual({ ok: true });
  await fsPromises.writeFile(host.theirs, 'new');
  const process = after;
  await swap({ kind: 'soak', process }, host);
  expect(await fsPromises.readdir(host.directory)).toContain('k0s.tmp');
  await swap({ kind: 'soak', process, overtakes: true }, host);
  expect(await fsPromises.readdir(host.directory)).not.toContain('k0s.tmp');
  expect(await fsPromises.readFile(host.binary, 'utf8')).toBe('new');
});
