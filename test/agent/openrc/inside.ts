/** Runs inside the jail: restarts a service under real OpenRC as the agent does, and prints what was seen as one JSON object. */
import { execFileSync } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { createCommands } from '../../../src/agent/service/commands.ts';
import type { ProcessId } from '../../../src/agent/service/host.ts';
import { openRc } from '../../../src/agent/service/openrc.ts';
import { findProcess } from '../../../src/agent/service/processes.ts';
import { serviceRestarter } from '../../../src/agent/service/service-restarter.ts';
import { askStatus } from '../../../src/agent/service/status-socket.ts';
import { systemd } from '../../../src/agent/service/systemd.ts';
import { sleep, systemClock } from '../../../src/util/clock.ts';
import { jsonLogger } from '../../../src/util/log.ts';

const BINARY = '/usr/local/bin/k0s';
const SOCKET = '/run/k0s.sock';
const RESPAWN_DELAY_S = 20;

/**
 * A service that answers as k0s does. The usual stand-in cannot be used: it ends when the process that holds its
 * standard input ends, and no process holds it here.
 */
const SERVICE = `#!${process.execPath}
const answer = JSON.stringify({ Version: 'v1', Pid: process.pid });
require('node:fs').rmSync('${SOCKET}', { force: true });
require('node:http').createServer((_, response) => response.end(answer)).listen('${SOCKET}');
`;

const said: unknown[] = [];
const log = jsonLogger(
  (line) => void said.push(JSON.parse(line)),
  () => systemClock.now(),
  'info',
);
const commands = createCommands(process.env, systemClock);
const restarter = serviceRestarter([systemd(commands), openRc(commands)], log);

async function addService(name: string, lines: readonly string[]): Promise<void> {
  const path = `/etc/init.d/${name}`;
  await writeFile(
    path,
    ['#!/sbin/openrc-run', 'supervisor=supervise-daemon', ...lines, ''].join('\n'),
  );
  await chmod(path, 0o755);
}

const rcService = (...args: string[]): void =>
  void execFileSync('rc-service', args, { stdio: 'ignore' });

/** Resolves with the process that answers, when it is another process than `former`. */
async function nextAfter(former: ProcessId | undefined): Promise<ProcessId> {
  for (;;) {
    const status = await askStatus(SOCKET, 1_000).catch(() => undefined);
    const process = status && findProcess(status.pid);
    if (process !== undefined && process.started !== former?.started) return process;
    await sleep(systemClock, 20);
  }
}

function kill(...pids: number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}

await writeFile(BINARY, SERVICE);
await chmod(BINARY, 0o755);
await addService('k0sworker', [
  `command=${BINARY}`,
  `command_args="worker --status-socket ${SOCKET}"`,
  `respawn_delay=${RESPAWN_DELAY_S}`,
  'retry="SIGTERM/90/SIGKILL/5"',
  'supervise_daemon_args="--stdout /dev/null --stderr /dev/null"',
]);
await addService('refit', [
  'command=/bin/sleep',
  'command_args=100000',
  'depend() { need k0sworker; }',
]);
rcService('refit', 'start');
const dependent = (): string =>
  execFileSync('pgrep', ['-f', '^/bin/sleep 100000'], { encoding: 'utf8' }).trim();

const first = await nextAfter(undefined);
const beside = dependent();
const orderedAt = performance.now();
await restarter.restart(first, BINARY);
const second = await nextAfter(first);
const tookMs = performance.now() - orderedAt;
const isBesideLeftAlone = dependent() === beside;

// The supervisor waits before it starts the next process, so the agent leaves the restart to the supervisor.
kill(second.pid);
while (findProcess(second.pid) !== undefined) await sleep(systemClock, 20);
await restarter.restart(second, BINARY);
const saidWhileWaiting = said.length;

// The supervisor has ended.
kill(second.parent);
while (findProcess(second.parent) !== undefined) await sleep(systemClock, 20);
await restarter.restart(second, BINARY);
const third = await nextAfter(second);

const isSupervised = third.parent !== second.parent && third.parent !== first.parent;
const seen = {
  tookMs,
  respawnDelayMs: RESPAWN_DELAY_S * 1000,
  isBesideLeftAlone,
  saidWhileWaiting,
  isSupervised,
  said,
};
process.stdout.write(`${JSON.stringify(seen)}\n`);
