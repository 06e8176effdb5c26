/** From the start of a process until its caches are there, beside a bare process that lists the same. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cattlePlans } from '../../src/api/kinds.ts';
import { credentialsOf } from '../../src/kube/config/credentials.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { jobs, nodes, pathOf, pods } from '../../src/kube/resources.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { type CattleRig, NAMESPACE } from './rig.ts';

/** Odd, so that the median is one that was. */
const ROUNDS = 5;

/** Milliseconds. */
export interface Starts {
  readonly ours: readonly number[];
  readonly bare: readonly number[];
}

/** The least that anybody could do with Node.js. */
const BARE_LIST = `
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

export async function measureStarts(rig: CattleRig, clock: Clock): Promise<Starts> {
  const starts = { ours: [] as number[], bare: [] as number[] };
  const input = await inputOf(await rig.plane.kubeconfig('cattle'));
  for (let round = 0; round < ROUNDS; round++) {
    const beforeOurs = clock.monotonic();
    const controller = await rig.start();
    starts.ours.push(clock.monotonic() - beforeOurs);
    await controller.stop();
    const beforeBare = clock.monotonic();
    await list(input);
    starts.bare.push(clock.monotonic() - beforeBare);
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

async function list(input: string): Promise<void> {
  const child = spawn(process.execPath, ['--eval', BARE_LIST], { stdio: ['pipe', 'ignore', 'inherit'] });
  const ended = once(child, 'exit');
  child.stdin?.end(input);
  const [code] = await ended;
  if (code !== 0) throw new RefitError('REFIT_INTERNAL', `the bare list ended with ${String(code)}`);
}
