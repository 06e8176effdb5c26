/** The attacks on the guards of the swap, the roll-back, the trial run and the snapshot of etcd. */
import * as files from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { type EffectTools, perform } from '../../src/agent/perform-step.ts';
import { allPids, findProcess } from '../../src/agent/service/processes.ts';
import { usersOf } from '../../src/agent/service/trusted-process.ts';
import { archiveReader } from '../../src/agent/snapshot/etcd-entry.ts';
import { keptSnapshot, takeSnapshot } from '../../src/agent/snapshot/take-snapshot.ts';
import { keptBinary } from '../../src/agent/state/kept-binary.ts';
import { upgradePathsOf } from '../../src/agent/state/state-directory.ts';
import { fileTrust } from '../../src/agent/state/trusted-path.ts';
import type { Step, StepOutcome } from '../../src/agent/steps/step.ts';
import { runTrial } from '../../src/agent/trial/trial-run.ts';
import { sleep, systemClock } from '../../src/util/clock.ts';
import { journalAt, workFor } from '../support/builders/agent-situations.ts';
import {
  type Attack,
  any,
  hashOf,
  LIMITS,
  type Scene,
  TOOLS,
  works,
} from './agent-guard-scenes.ts';

const OLD = '#!/bin/sh\necho v1.36.3+k0s.0\n';
const NEW = '#!/bin/sh\necho v1.36.3+k0s.2\n';
const EVIL = '#!/bin/sh\necho v1.36.3+k0s.9\n';

/** The place of the binary, with a new binary that is staged. */
async function upgrading(scene: Scene) {
  const binary = await scene.put('bin/k0s', OLD, 0o755);
  const { staging, staged, previous } = upgradePathsOf(binary);
  await scene.put('bin/.k0s.refit/staged', NEW, 0o755);
  await files.chmod(staging, 0o700);
  const kept = keptBinary({ ...TOOLS, record: scene.at('kept.json'), files });
  return { binary, staged, previous, kept };
}

/** Carries out a step for the signal that names the hash of the new binary. */
async function take(
  scene: Scene,
  step: Step,
  more: Partial<EffectTools> = {},
  sha256 = hashOf(NEW),
): Promise<StepOutcome> {
  const { signal, ...work } = workFor();
  const command = { ...signal.command, sha256, url: 'http://127.0.0.1:1/k0s' };
  const tools = {
    ...TOOLS,
    limits: LIMITS,
    userAgent: 'a',
    fileTrust,
    stateDirectory: scene.directory,
    restarter: { restart: async () => await Promise.resolve() },
    ...more,
  };
  const journal = journalAt('started', {
    work: { ...work, signal: { ...signal, command }, binary: scene.at('bin/k0s') },
  });
  return await perform(step, journal, tools as unknown as EffectTools, TOOLS.abort);
}

const content = async (path: string): Promise<string> => await files.readFile(path, 'utf8');

const noLinks = async (): Promise<never> =>
  await Promise.reject(Object.assign(new Error('no hard links'), { code: 'EPERM' }));

const STEPS: Readonly<Record<string, Attack>> = {
  'restart-path': async (scene) => {
    await upgrading(scene);
    await scene.folder('bin', 0o777);
    return (await take(scene, { kind: 'restart' })).ok;
  },
  'staging-folder': async (scene) => {
    await upgrading(scene);
    const staging = await scene.folder('bin/.k0s.refit', 0o777);
    await take(scene, { kind: 'download' });
    return ((await files.stat(staging)).mode & 0o777) !== 0o700;
  },
  'take-path': async (scene) => {
    const { kept, previous } = await upgrading(scene);
    await files.writeFile(previous, EVIL);
    const next = { path: previous, version: 'v1', keepMs: undefined };
    await kept.replace(next, async () => await Promise.resolve());
    await files.chmod(previous, 0o666);
    return (await take(scene, { kind: 'download' }, { kept }, hashOf(EVIL))).ok;
  },
  'keep-path': async (scene) => {
    await upgrading(scene);
    await scene.folder('bin', 0o777);
    return (await take(scene, { kind: 'keep-previous' })).ok;
  },
  'keep-other': async (scene) => {
    const { binary, previous } = await upgrading(scene);
    await files.writeFile(previous, OLD);
    await files.writeFile(binary, NEW);
    await take(scene, { kind: 'keep-previous' });
    return (await content(previous)) === NEW;
  },
  'swap-path': async (scene) => {
    await upgrading(scene);
    await scene.folder('bin', 0o777);
    return (await take(scene, { kind: 'swap' })).ok;
  },
  'swap-stamp': async (scene) => {
    const { binary, staged } = await upgrading(scene);
    const tried = new Map<string, string>();
    await take(scene, { kind: 'trial-run' }, { tried });
    await files.writeFile(staged, EVIL);
    await take(scene, { kind: 'swap' }, { tried });
    return (await content(binary)) === EVIL;
  },
  'swap-copy': async (scene) => {
    const { binary } = await upgrading(scene);
    const tried = new Map<string, string>();
    await take(scene, { kind: 'trial-run' }, { tried });
    const copyFile: typeof files.copyFile = async (_from, to) => await files.writeFile(to, EVIL);
    await take(scene, { kind: 'swap' }, { tried, files: { ...files, link: noLinks, copyFile } });
    return (await content(binary)) === EVIL;
  },
  'swap-hash': async (scene) => {
    const { binary, staged } = await upgrading(scene);
    await files.writeFile(staged, EVIL);
    await take(scene, { kind: 'swap' });
    return (await content(binary)) === EVIL;
  },
  'back-path': async (scene) => {
    const { previous, binary } = await upgrading(scene);
    await files.writeFile(previous, EVIL);
    await files.chmod(previous, 0o666);
    await take(scene, { kind: 'roll-back', reason: 'it failed' });
    return (await content(binary)) === EVIL;
  },
  'back-hash': async (scene) => {
    const { kept, previous, binary } = await upgrading(scene);
    await take(scene, { kind: 'keep-previous' }, { kept });
    await files.rm(previous);
    await files.writeFile(previous, EVIL);
    await take(scene, { kind: 'roll-back', reason: 'it failed' }, { kept });
    return (await content(binary)) === EVIL;
  },
  'same-bytes': async (scene) => {
    const { binary } = await upgrading(scene);
    await files.writeFile(binary, EVIL);
    await take(scene, { kind: 'swap', overtakes: true });
    return (await content(binary)) === EVIL;
  },
};

/** Resolves with true if the trial run accepts this program. */
async function passes(scene: Scene, script: string, sha256?: string): Promise<boolean> {
  const binary = await scene.put('staged', `#!/bin/sh\n${script}\n`, 0o755);
  return await works(runTrial({ binary, sha256, version: 'v1', timeoutMs: 20_000 }));
}

/** The time in which the kernel ends a killed process, also on a busy machine. */
const ENDING_MS = 5_000;

/** Returns true if the process runs as the user of the trial run. */
function isLeft(pid: number): boolean {
  return usersOf(pid)?.[0] === 0x7000_0000 + process.pid && findProcess(pid) !== undefined;
}

const TRIAL: Readonly<Record<string, Attack>> = {
  'trial-link': async (scene) => {
    await scene.put('other', '#!/bin/sh\necho v1\n', 0o755);
    await files.symlink(scene.at('other'), scene.at('staged'));
    const trial = { sha256: undefined, version: 'v1', timeoutMs: 20_000 };
    return await works(runTrial({ binary: scene.at('staged'), ...trial }));
  },
  'trial-hash': async (scene) => await passes(scene, 'echo v1', hashOf('other')),
  'trial-user': async (scene) => await passes(scene, '[ $(id -u) != 0 ] || echo v1'),
  'trial-left': async (scene) => {
    // The process has a session of its own, so that the end of the process group does not end it.
    const left = 'setsid sleep 20 <&- >/dev/null 2>&1 &';
    await passes(scene, `${left}\nsleep 0.1; echo v1`);
    // A process that was killed exists until the kernel has ended it.
    const deadline = systemClock.monotonic() + ENDING_MS;
    let found = allPids().filter(isLeft);
    while (found.length > 0 && systemClock.monotonic() < deadline) {
      await sleep(systemClock, 20);
      found = found.filter(isLeft);
    }
    for (const pid of found) process.kill(pid, 'SIGKILL');
    return found.length > 0;
  },
  'trial-rights': async (scene) =>
    await passes(scene, "grep -q 'NoNewPrivs:.*1' /proc/self/status || echo v1"),
};

/** A controller with data of etcd, and a k0s that runs this script to take a snapshot. */
async function controller(scene: Scene, script: string) {
  await scene.put('data/etcd/member/snap/db', 'x');
  const stateDirectory = await scene.folder('state', 0o700);
  const binary = await scene.put('k0s', `#!/bin/sh\n${script}\n`, 0o755);
  const places = { dataDirectory: scene.at('data'), statusSocket: scene.at('status.sock') };
  const request = { ...places, binary, stateDirectory, version: 'v1', reserveBytes: 0, rules: {} };
  return { request, take: async () => await works(takeSnapshot(request, { ...TOOLS, fileTrust })) };
}

/** Resolves with true if the agent keeps this snapshot instead of taking another one. */
async function keeps(scene: Scene, path: string, text: string): Promise<boolean> {
  const { request } = await controller(scene, 'exit 1');
  const reported = { at: '', path, sha256: hashOf(text) };
  return (await keptSnapshot(reported, request, { ...TOOLS, fileTrust })) !== undefined;
}

/** A block of a tar archive: the header of a file, or its content. */
function tarOf(name: string, body: Buffer): Buffer {
  const header = Buffer.alloc(512);
  header.write(name);
  header.write(`${body.length.toString(8).padStart(11, '0')}\0`, 124);
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

const SNAPSHOT: Readonly<Record<string, Attack>> = {
  'snapshot-program': async (scene) => {
    const { request, take: attempt } = await controller(scene, `touch ${scene.at('owned')}`);
    await files.chmod(request.binary, 0o777);
    await attempt();
    return await works(files.stat(scene.at('owned')));
  },
  'snapshot-folder': async (scene) => {
    const modes = `stat -c %a ${scene.at('state/snapshots')} >${scene.at('mode')}`;
    const { take: attempt } = await controller(scene, modes);
    await attempt();
    return (await content(scene.at('mode'))).trim() !== '700';
  },
  'snapshot-found': async (scene) => {
    const path = await scene.put('state/snapshots/k0s-before-v1', 'evil');
    const folder = await scene.folder('state/snapshots', 0o777);
    await keeps(scene, path, 'evil');
    return ((await files.stat(folder)).mode & 0o777) !== 0o700;
  },
  'snapshot-place': async (scene) => {
    const path = await scene.put('k0s-before-v1', 'secret');
    return await keeps(scene, path, 'secret');
  },
  'snapshot-same': async (scene) => {
    const other = await scene.put('other', 'secret');
    await scene.folder('state/snapshots', 0o700);
    await files.symlink(other, scene.at('state/snapshots/k0s-before-v1'));
    return await keeps(scene, scene.at('state/snapshots/k0s-before-v1'), 'secret');
  },
  'snapshot-hash': async (scene) => {
    const path = await scene.put('state/snapshots/k0s-before-v1', 'changed');
    return await keeps(scene, path, 'whole');
  },
  'snapshot-whole': async () => {
    const cut = [Buffer.alloc(10, 'a'), Buffer.alloc(1_000, 'a')].map(async (body) => {
      const { input, problem } = archiveReader();
      input.end(gzipSync(Buffer.concat([tarOf('etcd-snapshot.db', body), Buffer.alloc(1_024)])));
      return (await problem) === undefined;
    });
    return await any(cut);
  },
};

export const STEP_ATTACKS: Readonly<Record<string, Attack>> = { ...STEPS, ...TRIAL, ...SNAPSHOT };
