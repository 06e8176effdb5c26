/**
 * Runs Prometheus and Alertmanager of Debian. They scrape the gauges that a test sets, and evaluate one alert about
 * them.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { cacheDirectory } from '../../tools/controlplane/build.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';

const CACHE = join(cacheDirectory(process.env), '..');
const PROMETHEUS = join(CACHE, 'prometheus/usr/bin/prometheus');
export const PROMTOOL = join(CACHE, 'prometheus/usr/bin/promtool');
const ALERTMANAGER = join(CACHE, 'alertmanager/usr/bin/prometheus-alertmanager');

/**
 * The Alertmanager of Debian reads its templates from /usr/share, regardless of the folder into which it is unpacked.
 * No flag and no configuration changes this path. So the Alertmanager runs in its own mount namespace, in which the
 * unpacked folder is mounted there.
 */
const SHARE = join(CACHE, 'alertmanager/usr/share');
const IN_NAMESPACE = [
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  '--mount',
  'sh',
  '-c',
  'mount --bind "$0" /usr/share && exec "$@"',
  SHARE,
];

function absent(path: string): string | undefined {
  return existsSync(path) ? undefined : `no ${path}: .ci/run unpacks a package of Debian there`;
}

/** Why Prometheus cannot run here; undefined if it can. */
export const MISSING_PROMETHEUS = absent(PROMETHEUS);
/** Why the programs cannot run here; undefined if they can. */
export const MISSING =
  MISSING_PROMETHEUS ??
  absent(ALERTMANAGER) ??
  (spawnSync('unshare', [...IN_NAMESPACE, 'true']).status === 0
    ? undefined
    : 'no mount namespace can be made, in which Alertmanager finds its templates');

/**
 * A server whose answers tests control. `/metrics` returns the gauges. Every other path returns `status` if the token
 * is right.
 */
export class Application implements AsyncDisposable {
  readonly gauges: Record<string, number> = {};
  status = 200;
  token: string | undefined;
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Application> {
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const application = new Application(server);
    server.on('request', ({ url, headers }, response) => {
      if (url === '/metrics') {
        const lines = Object.entries(application.gauges).map(
          ([name, value]) => `${name} ${value}\n`,
        );
        response
          .writeHead(200, { 'content-type': 'text/plain; version=0.0.4' })
          .end(lines.join(''));
        return;
      }
      const { token, status } = application;
      const isKnown = token === undefined || headers.authorization === `Bearer ${token}`;
      response.writeHead(isKnown ? status : 401).end();
    });
    return application;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export interface Monitoring extends AsyncDisposable {
  readonly prometheus: string;
  readonly alertmanager: string;
  /** Stops Prometheus, which then answers no request. */
  readonly endPrometheus: () => Promise<void>;
}

/** Returns a function that starts a program in this directory, and waits until it is ready. */
function startIn(directory: string) {
  return async (name: string, command: string, host: string, args: readonly string[]) => {
    const ready = async (): Promise<boolean> =>
      await fetch(`http://${host}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    return await startProcess({ name, command, args, directory, ready, clock: systemClock });
  };
}

/** Starts a Prometheus that keeps exemplars and scrapes this `host:port` each second. */
export async function startScraper(target: string): Promise<AsyncDisposable & { url: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-scraper-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  const host = `127.0.0.1:${await freePort()}`;
  const config = join(directory, 'prometheus.yaml');
  const job = { job_name: 'refit', static_configs: [{ targets: [target] }] };
  const whole = { global: { scrape_interval: '1s' }, scrape_configs: [job] };
  await writeFile(config, JSON.stringify(whole));
  const prometheus = await startIn(directory)('prometheus', PROMETHEUS, host, [
    '--enable-feature=exemplar-storage',
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=${host}`,
  ]);
  return {
    url: `http://${host}`,
    async [Symbol.asyncDispose]() {
      await prometheus.stop();
      await rm(directory, { recursive: true });
    },
  };
}

/** The alert `Broken` with severity critical fires while the gauge `test_broken` is above 0. */
export async function startMonitoring(application: Application): Promise<Monitoring> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-monitoring-'));
  for (const folder of ['logs', 'pids', 'data']) await mkdir(join(directory, folder));
  const ports = { prometheus: await freePort(), alertmanager: await freePort() };
  const hosts = {
    prometheus: `127.0.0.1:${ports.prometheus}`,
    alertmanager: `127.0.0.1:${ports.alertmanager}`,
  };
  const json = async (name: string, value: unknown): Promise<string> => {
    const path = join(directory, name);
    await writeFile(path, JSON.stringify(value));
    return path;
  };
  const rule = { alert: 'Broken', expr: 'test_broken > 0', labels: { severity: 'critical' } };
  const rules = await json('rules.yaml', {
    groups: [{ name: 'test', interval: '1s', rules: [rule] }],
  });
  const config = await json('prometheus.yaml', {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [hosts.alertmanager] }] }] },
    scrape_configs: [
      { job_name: 'app', static_configs: [{ targets: [application.url.replace('http://', '')] }] },
    ],
  });
  const routes = await json('alertmanager.yaml', {
    route: { receiver: 'none' },
    receivers: [{ name: 'none' }],
  });
  const start = startIn(directory);
  const processes: Process[] = [
    await start('alertmanager', 'unshare', hosts.alertmanager, [
      ...IN_NAMESPACE,
      ALERTMANAGER,
      `--config.file=${routes}`,
      `--storage.path=${join(directory, 'data', 'alertmanager')}`,
      `--web.listen-address=${hosts.alertmanager}`,
      '--cluster.listen-address=',
    ]),
  ];
  const prometheus = await start('prometheus', PROMETHEUS, hosts.prometheus, [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(directory, 'data', 'prometheus')}`,
    `--web.listen-address=${hosts.prometheus}`,
  ]);
  processes.push(prometheus);
  return {
    prometheus: `http://${hosts.prometheus}`,
    alertmanager: `http://${hosts.alertmanager}`,
    endPrometheus: async () => await prometheus.stop(),
    async [Symbol.asyncDispose]() {
      for (const process of processes) await process.stop();
      await rm(directory, { recursive: true });
    },
  };
}
