/** The attacks on the guards of processes, of the status socket, of services and of the kubelet. */
import fs from 'node:fs';
import * as files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { IDLE } from '../../src/agent/journal.ts';
import { findService, findServices } from '../../src/agent/service/find-services.ts';
import { cgroupV1Of } from '../../src/agent/service/kubelet-ground.ts';
import { observeHost, searchService } from '../../src/agent/service/observe-host.ts';
import { openRc } from '../../src/agent/service/openrc.ts';
import { argumentsOf, bootId, endProcess, findProcess } from '../../src/agent/service/processes.ts';
import { servicePlaces } from '../../src/agent/service/service-place.ts';
import { systemd } from '../../src/agent/service/systemd.ts';
import { whyForeign } from '../../src/agent/service/trusted-process.ts';
import { askService, type TrustedAnswer } from '../../src/agent/service/trusted-service.ts';
import { ownAgentOf } from '../../src/agent/service/worker-profile.ts';
import { DEFAULT_TOOLS } from '../../src/util/tools.ts';
import { workFor } from '../support/builders/agent-situations.ts';
import { type Attack, any, NOBODY, type Scene, works } from './agent-guard-scenes.ts';

const AS_NOBODY = { uid: NOBODY, gid: NOBODY };
const isTrusted = (pid: number): boolean => whyForeign(pid) === undefined;

/** Runs the work while a function of node:fs returns something else for one path. */
async function withForged(
  name: 'readFileSync' | 'statSync',
  path: string,
  forged: (real: unknown) => unknown,
  work: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const original = fs[name] as (...args: readonly unknown[]) => unknown;
  const forge = (...args: readonly unknown[]): unknown => {
    const real = original(...args);
    return args[0] === path ? forged(real) : real;
  };
  Object.assign(fs, { [name]: forge });
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    Object.assign(fs, { [name]: original });
    syncBuiltinESMExports();
  }
}

/** Resolves once the process has replaced the program that started it. */
async function untilItIs(pid: number, program: string): Promise<number> {
  for (let round = 0; argumentsOf(pid)[0] !== program; round++) {
    if (round === 1_000) throw new Error(`PID ${pid} never became ${program}`);
    await pause(5);
  }
  return pid;
}

const TRUST: Readonly<Record<string, Attack>> = {
  'process-first': async () => await any([1, process.pid].map(async (pid) => await trusts(pid))),
  'process-users': async (scene) =>
    isTrusted(
      await untilItIs(await scene.run('setpriv', [`--ruid=${NOBODY}`, 'sleep', '60']), 'sleep'),
    ),
  'process-user': async (scene) => isTrusted(await scene.waiter(['worker'], AS_NOBODY)),
  'process-set-user': async (scene) =>
    await any(
      [0o4755, 0o2755].map(async (mode) => {
        const path = scene.at(`sleep-${mode}`);
        await files.copyFile('/bin/sleep', path);
        await files.chmod(path, mode);
        return isTrusted(await scene.run(path, ['60']));
      }),
    ),
  'process-container': async (scene) => {
    const pid = await scene.waiter(['worker']);
    const forged = () => '0::/kubepods/pod1/worker\n';
    return await withForged('readFileSync', `/proc/${pid}/cgroup`, forged, () => isTrusted(pid));
  },
  'process-root': async (scene) => {
    const pid = await scene.waiter(['worker']);
    const forged = () => ({ dev: 1n, ino: 1n });
    return await withForged('statSync', `/proc/${pid}/root`, forged, () => isTrusted(pid));
  },
  'kill-same': async (scene) => {
    const pid = await scene.run('sleep', ['60']);
    const killed: number[] = [];
    const original = process.kill.bind(process);
    process.kill = (target) => {
      killed.push(target);
      return true;
    };
    try {
      endProcess({ pid, started: `${bootId()}/1`, parent: 1 }, 'SIGKILL');
    } finally {
      process.kill = original;
    }
    return await Promise.resolve(killed.length > 0);
  },
};

async function trusts(pid: number): Promise<boolean> {
  return await Promise.resolve(isTrusted(pid));
}

/** Serves a status socket that names this process. */
async function socketFor(scene: Scene, pid: number, folder = 'run'): Promise<string> {
  await scene.folder(folder);
  const status = JSON.stringify({ Version: 'v1.36.3+k0s.2', Pid: pid, Role: 'worker' });
  return await scene.serve(
    (_request, response) => void response.end(status),
    scene.at(`${folder}/status.sock`),
  );
}

const believes = async (socket: string): Promise<boolean> =>
  await works(askService(socket, 20_000));

/** Observes a host whose service is this process and whose binary is at this path. */
async function observed(scene: Scene, pid: number, binary: string) {
  const statusSocket = await socketFor(scene, pid);
  const current = { statusSocket, dataDirectory: scene.directory };
  const places = { current, search: async () => await Promise.resolve(current) };
  return await observeHost({ places, binary }, IDLE);
}

const SOCKET: Readonly<Record<string, Attack>> = {
  'socket-path': async (scene) => {
    const socket = await socketFor(scene, await scene.waiter(['worker']), 'open');
    await scene.folder('open', 0o777);
    return await believes(socket);
  },
  'socket-process': async (scene) =>
    await believes(await socketFor(scene, await scene.waiter(['worker'], AS_NOBODY))),
  'socket-service': async (scene) =>
    await believes(await socketFor(scene, await scene.run('sleep', ['60']))),
  'socket-same': async (scene) => {
    const pid = await scene.waiter(['worker']);
    const socket = await socketFor(scene, pid);
    let reads = 0;
    // The second process has the same PID and a later start.
    const later = (real: unknown): unknown => {
      const fields = String(real).split(' ');
      if (++reads > 1) fields[21] += '1';
      return fields.join(' ');
    };
    const work = async (): Promise<boolean> => await believes(socket);
    return await withForged('readFileSync', `/proc/${pid}/stat`, later, work);
  },
  'binary-path': async (scene) => {
    const pid = await scene.waiter([scene.at('k0s'), 'worker']);
    await files.chmod(scene.at('k0s'), 0o777);
    return (await observed(scene, pid, scene.at('k0s'))).running !== undefined;
  },
  'binary-runs': async (scene) => {
    const pid = await scene.waiter([scene.at('k0s'), 'worker']);
    const other = await scene.put('other', '', 0o755);
    return (await observed(scene, pid, other)).running?.current === true;
  },
  'profile-path': async (scene) => {
    const statusSocket = await socketFor(scene, process.pid);
    await scene.put('worker-profile.yaml', 'name: default\ndata: {}\n', 0o666);
    const version = 'v1.40.0+k0s.0';
    const own = { pid: 1, started: scene.directory, parent: 1 };
    const answer: TrustedAnswer = { version, pid: 1, process: own, profile: 'default' };
    const facts = await ownAgentOf(answer, { statusSocket, dataDirectory: scene.directory });
    return facts.ownAgent !== undefined;
  },
};

/** Starts a process that looks like a supervisor of OpenRC and that names a file as its log. */
async function supervisor(scene: Scene, log: string, options = {}): Promise<number> {
  const args = ['evil', '--stderr', log];
  return await scene.waiter(args, { argv0: 'supervise-daemon', ...options });
}

/** Looks for the service of OpenRC whose supervisor is this process. */
async function underOpenRc(scene: Scene, parent: number) {
  const binary = await scene.put('k0s', '', 0o755);
  await scene.put('init.d/k0s', `supervisor=supervise-daemon\ncommand="${binary}"\n`);
  const run = async (): Promise<never> => await Promise.reject(new Error('unused'));
  const manager = openRc({ ask: run, start: run }, scene.at('init.d'), scene.at('options'));
  return await manager.find({ pid: 0, started: 'x/1', parent }, binary);
}

async function logUnder(scene: Scene, parent: number): Promise<string> {
  const account = await (await underOpenRc(scene, parent))?.account?.(0);
  return String(account?.log);
}

/** Two processes that look like the service. */
const GOOD = { pid: 2_001, statusSocket: '/good.sock', dataDirectory: '/good' };
const EVIL = { pid: 2_002, statusSocket: '/evil.sock', dataDirectory: '/evil' };

/** Returns places for these candidates, where only the good process answers. */
function placesFor(candidates: { found: readonly (typeof GOOD)[] }, answering: readonly string[]) {
  let now = 0;
  // Each search comes long after the one before it.
  const tick = (): number => {
    now += 10_000;
    return now;
  };
  const clock = { ...DEFAULT_TOOLS.clock, monotonic: tick };
  return servicePlaces({
    ...DEFAULT_TOOLS,
    clock,
    flags: {},
    findServices: () => candidates.found,
    askStatus: async (socket) =>
      await (answering.includes(socket)
        ? Promise.resolve({ version: 'v1', pid: GOOD.pid })
        : Promise.reject(new Error('no answer'))),
  });
}

const SERVICES: Readonly<Record<string, Attack>> = {
  'service-process': async (scene) => {
    const pid = await scene.waiter(['worker'], AS_NOBODY);
    return findServices().some((found) => found.pid === pid);
  },
  'service-searched': async (scene) => {
    await scene.waiter(['other', 'worker']);
    // The service and its supervisor have ended.
    const original = { pid: 0, started: `${bootId()}/0`, parent: 0 };
    const work = { ...workFor(), binary: scene.at('k0s'), original };
    return searchService(work) !== undefined;
  },
  'service-restarted': async (scene) => {
    const original = { started: `${bootId()}/0`, parent: process.pid };
    const path = await scene.put('k0s', 'while read -r _; do :; done\n', 0o755);
    const waits = { stdio: ['pipe', 'ignore', 'ignore'] as const };
    const nobody = await scene.run('/bin/sh', [path, 'worker'], {
      ...AS_NOBODY,
      stdio: [...waits.stdio],
    });
    const other = await scene.waiter(['other', 'worker']);
    return [nobody, other].includes(findService(path, original)?.pid ?? 0);
  },
  'supervisor-log': async (scene) => {
    const secret = await scene.put('secret', 'the secret', 0o600);
    return (await logUnder(scene, await supervisor(scene, secret, AS_NOBODY))).includes('secret');
  },
  'supervisor-gone': async (scene) =>
    (await underOpenRc(scene, await scene.waiter(['other'], AS_NOBODY))) === undefined,
  'supervisor-name': async (scene) =>
    (await underOpenRc(scene, await supervisor(scene, '/none', AS_NOBODY)))?.title ===
    'OpenRC service evil',
  'log-path': async (scene) => {
    await files.symlink(
      await scene.put('secret', 'the secret', 0o600),
      `${await scene.folder('open')}/log`,
    );
    await scene.folder('open', 0o777);
    return (await logUnder(scene, await supervisor(scene, scene.at('open/log')))).includes(
      'secret',
    );
  },
  'kubelet-process': async (scene) => {
    const argv0 = scene.at('bin/kubelet');
    await scene.waiter(['worker', '--fail-cgroupv1=true'], { argv0, ...AS_NOBODY });
    const ground = { dataDirectory: scene.directory, isOnCgroupV1: () => true };
    return cgroupV1Of(ground) !== undefined;
  },
  'place-pid': async () => {
    const places = placesFor({ found: [EVIL, GOOD] }, [EVIL.statusSocket, GOOD.statusSocket]);
    return (await places.search()).dataDirectory !== GOOD.dataDirectory;
  },
  'place-proven': async () => {
    const candidates = { found: [GOOD] };
    const places = placesFor(candidates, [GOOD.statusSocket]);
    await places.search();
    candidates.found = [EVIL];
    return (await places.search()).dataDirectory === EVIL.dataDirectory;
  },
  'unit-process': async (scene) => {
    const pid = await scene.waiter(['worker']);
    const binary = await scene.put('k0s', '', 0o755);
    const shown = `Id=evil.service\nMainPID=${process.pid}\nActiveState=active\nExecStart={ path=/bin/evil }\n`;
    const ask = async (): Promise<string> => await Promise.resolve(shown);
    const start = async (): Promise<void> => await Promise.resolve();
    const manager = systemd({ ask, start }, () => '0::/system.slice/evil.service\n');
    const own = findProcess(pid);
    return own !== undefined && (await manager.find(own, binary)) !== undefined;
  },
};

export const PROCESS_ATTACKS: Readonly<Record<string, Attack>> = {
  ...TRUST,
  ...SOCKET,
  ...SERVICES,
};
