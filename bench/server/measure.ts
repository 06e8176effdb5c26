/**
 * Measures the update server while a thousand clients download at the same time. Alternates between the update server
 * and nginx.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { REFIT } from '../../sandbox/refit.ts';
import { runBundle } from '../../src/cmd/update-server-command.ts';
import { readCatalog } from '../../src/updates/server/catalog.ts';
import type { Clock } from '../../src/util/clock.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import { must } from '../../tools/release/commands.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { median } from '../statistics.ts';
import { nginxCommand } from './nginx.ts';

const MIB = 1024 * 1024;
const FILE_BYTES = 60 * MIB;
const CLIENTS = 1_000;
const RANGE_BYTES = 2 * MIB;
const ROUNDS = 5;
const VERSION = 'v1.36.4+k0s.0';
const LOAD = join(import.meta.dirname, '..', 'download-load.ts');

interface ServerParts {
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** One of the two servers that are compared. */
interface Contender extends Process {
  readonly port: number;
  readonly path: string;
  /** The MiB per second in each round. */
  readonly rates: number[];
}

export async function measureServer(parts: ServerParts): Promise<Findings> {
  await using started = new AsyncDisposableStack();
  const directory = join(parts.directory, 'server');
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder), { recursive: true });
  const hash = await publish(directory, parts.abort);
  const refitPort = await freePort();
  const nginxPort = await freePort();
  const served = join(directory, 'releases');
  const serve = [REFIT, 'serve', served, '--address', `127.0.0.1:${refitPort}`];
  const start = async (
    name: string,
    command: string,
    args: readonly string[],
    port: number,
  ): Promise<Contender> => {
    const ready = async (): Promise<boolean> => await answers(port);
    const process = await startProcess({ ...parts, name, command, args, directory, ready });
    started.defer(async () => await process.stop());
    return { ...process, port, path: `/files/${hash}/k0s`, rates: [] };
  };
  const refit = await start('refit', process.execPath, serve, refitPort);
  // nginx finds the file by its path. The update server finds it by the hash, and ignores the name after the hash.
  const root = join(directory, 'nginx-root');
  await mkdir(join(root, 'files', hash), { recursive: true });
  await writeFile(join(root, 'files', hash, 'k0s'), await readFile(join(served, 'files', hash)));
  const [command, args] = await nginxCommand(join(directory, 'nginx'), root, nginxPort);
  const nginx = await start('nginx', command, args, nginxPort);
  for (let round = 0; round < ROUNDS; round++)
    for (const each of [nginx, refit]) each.rates.push(await load(each));
  return findings(refit, nginx, await peakMiB(refit.pid));
}

/** Creates the releases that the update server serves. Resolves with the hash of the file. */
async function publish(directory: string, abort: AbortSignal): Promise<string> {
  const bytes = Buffer.alloc(FILE_BYTES);
  for (let at = 0; at < FILE_BYTES; at += 4)
    bytes.writeUInt32LE(Math.imul(at, 2_654_435_761) >>> 0, at);
  await writeFile(join(directory, 'k0s'), bytes);
  const releases = [{ version: VERSION, files: [{ platform: 'linux-amd64', k0s: 'k0s' }] }];
  const file = join(directory, 'bundle.yaml');
  await writeFile(file, JSON.stringify({ releases, channels: { stable: [{ version: VERSION }] } }));
  const served = join(directory, 'releases');
  await runBundle(served, { file }, { write: () => undefined, abort });
  return (await readCatalog(served)).releases[VERSION]?.[0]?.sha256 ?? '';
}

/** Returns the MiB per second. The load comes from a separate process, which is the same for both servers. */
async function load({ port, path }: Contender): Promise<number> {
  const numbers = [FILE_BYTES, CLIENTS, RANGE_BYTES].map(String);
  const printed = await must(process.execPath, [LOAD, String(port), path, ...numbers]);
  return (CLIENTS * RANGE_BYTES) / MIB / (Number(printed) / 1000);
}

async function answers(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (is: boolean) => (): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}

/** Returns the largest resident set of the process so far, in MiB. */
async function peakMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

function findings(refit: Contender, nginx: Contender, peak: number): Findings {
  const ours = median(refit.rates);
  const theirs = median(nginx.rates);
  const what = `${CLIENTS} ranges of ${RANGE_BYTES / MIB} MiB at once from a file of ${FILE_BYTES / MIB} MiB`;
  const rates = ({ rates: all }: Contender): string => all.map(formatNumber).join(', ');
  return {
    figures: [
      {
        key: 'server.throughputRatioVsNginx',
        value: ours / theirs,
        unit: '×',
        goal: { bound: 'least', limit: 0.6 },
        madeOf: `${formatNumber(ours)} MiB/s ÷ ${formatNumber(theirs)} MiB/s of nginx, ${what}, median of ${ROUNDS} rounds each`,
      },
      {
        key: 'server.peakRssMiB',
        value: peak,
        unit: 'MiB',
        goal: { bound: 'most', limit: 400 },
        madeOf: `greatest resident set of \`refit serve\` in all rounds; its cache of blocks may have 128 MiB`,
      },
    ],
    details: [
      {
        title: 'MiB per second in each round',
        header: ['SERVER', 'ROUNDS'],
        rows: [
          ['refit serve', rates(refit)],
          ['nginx', rates(nginx)],
        ],
      },
    ],
  };
}
