/**
 * Measures the time from the start of a process until its caches are filled, and compares it with programs that only
 * list the same objects.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { cattlePlans } from '../../src/api/kinds.ts';
import { credentialsOf } from '../../src/kube/config/credentials.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { jobs, nodes, pathOf, pods } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { NODE_FLAGS } from '../../tools/build/node-flags.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { type CattleParts, type CattleRig, NAMESPACE } from './rig.ts';

/** An odd number, so that the median is a measured value. */
const ROUNDS = 9;

/** Milliseconds. */
export interface Starts {
  readonly ours: readonly number[];
  /**
   * The times of a program that has only the Kubernetes client of Refit. It is built and started in the same way as
   * Refit.
   */
  readonly client: readonly number[];
  /** The times of a script that has no Kubernetes client. */
  readonly script: readonly number[];
}

/**
 * The smallest program that lists the objects with Node.js. It does not read a kubeconfig; it receives the values on
 * standard input.
 */
const SCRIPT = `
const { get, Agent } = require('node:https');
let input = '';
process.stdin.on('data', (text) => (input += text)).on('end', () => {
  const { tls, headers, urls } = JSON.parse(input);
  const agent = new Agent({ ...tls, keepAlive: true });
  for (const url of urls)
    get(url, { agent, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => (body += text)).on('end', () => {
        if (response.statusCode !== 200) throw new Error(body);
        JSON.parse(body);
        if (urls.pop() && urls.length === 0) process.exit(0);
      });
    });
});`;

export async function measureStarts(
  rig: CattleRig,
  { clock, directory }: CattleParts,
): Promise<Starts> {
  const kubeconfig = await rig.plane.kubeconfig('cattle');
  const program = join(import.meta.dirname, 'bare-client.ts');
  const client = await buildRefit(join(directory, 'bare-client'), 'minified', program);
  const list = async (): Promise<void> =>
    await untilDone([...NODE_FLAGS, client, kubeconfig, NAMESPACE]);
  const input = await inputOf(kubeconfig);
  const starts = { ours: [] as number[], client: [] as number[], script: [] as number[] };
  const timed = async (of: keyof Starts, work: () => Promise<Process | void>): Promise<void> => {
    const before = clock.monotonic();
    const started = await work();
    starts[of].push(clock.monotonic() - before);
    await started?.stop();
  };
  // The first start of each program is not measured, because it fills the cache of compiled code of Node.js.
  await list();
  await (await rig.start()).stop();
  for (let round = 0; round < ROUNDS; round++) {
    await timed('ours', async () => await rig.start());
    await timed('client', list);
    await timed('script', async () => await untilDone(['--eval', SCRIPT], input));
  }
  return starts;
}

async function inputOf(kubeconfig: string): Promise<string> {
  const config = await loadClusterConfig({ path: kubeconfig });
  const { headers, tls } = await credentialsOf(config, systemClock).current();
  const urls = [
    pathOf(nodes),
    ...[cattlePlans, jobs, pods].map((resource) => pathOf(resource, { namespace: NAMESPACE })),
  ].map((path) => `${config.server}${path}`);
  return JSON.stringify({ headers, tls, urls });
}

async function untilDone(args: readonly string[], input = ''): Promise<void> {
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'inherit'] });
  const ended = once(child, 'exit');
  child.stdin?.end(input);
  const [code] = await ended;
  if (code !== 0) throw new RefitError('REFIT_INTERNAL', `a bare list ended with ${String(code)}`);
}
