/** Owns the comparison of Refit's Kubernetes client with the official one: the same requests, one process each, in turns. */
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { run } from '../../tools/controlplane/run.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { median } from '../statistics.ts';

const PROGRAM = join(import.meta.dirname, '..', 'time-requests.ts');
const REQUESTS = 200;
/** Odd, so that the median is a round that was. */
const ROUNDS = 7;

export interface Round {
  /** Milliseconds for all requests of a process. */
  readonly refit: number;
  readonly clientNode: number;
}

/** `kubeconfig` leads to a real API server over TLS. */
export async function compareClients(kubeconfig: string, abort: AbortSignal): Promise<Findings> {
  const rounds: Round[] = [];
  for (let index = 0; index < ROUNDS; index++) {
    // Who goes first changes with each round: whatever slows the machine down hits both.
    const first = index % 2 === 0 ? 'refit' : 'client-node';
    const a = await time(first, kubeconfig, abort);
    const b = await time(first === 'refit' ? 'client-node' : 'refit', kubeconfig, abort);
    rounds.push(first === 'refit' ? { refit: a, clientNode: b } : { refit: b, clientNode: a });
  }
  return clientFindings(rounds);
}

export function clientFindings(rounds: readonly Round[]): Findings {
  const ratios = rounds.map(({ refit, clientNode }) => clientNode / refit);
  const times = [median(rounds.map(({ clientNode }) => clientNode)), median(rounds.map(({ refit }) => refit))];
  const [theirs, ours] = times.map((time) => `${formatNumber(time)} ms`);
  return {
    figures: [
      {
        key: 'client.requestRatioVsClientNode',
        value: median(ratios),
        unit: '×',
        goal: { bound: 'least', limit: 3 },
        madeOf: `${theirs} by @kubernetes/client-node ÷ ${ours} by Refit, for ${REQUESTS} GETs; medians of ${rounds.length}`,
      },
    ],
    details: [
      {
        title: `${REQUESTS} GETs one after the other, in milliseconds`,
        header: ['ROUND', '@kubernetes/client-node', 'Refit', 'RATIO'],
        rows: rounds.map(({ refit, clientNode }, index) =>
          [index + 1, clientNode, refit, clientNode / refit].map(formatNumber),
        ),
      },
    ],
  };
}

async function time(client: string, kubeconfig: string, abort: AbortSignal): Promise<number> {
  const args = [PROGRAM, client, kubeconfig, String(REQUESTS)];
  const { ok, stdout, stderr } = await run(process.execPath, args, { abort });
  const milliseconds = Number.parseFloat(stdout);
  if (ok && milliseconds > 0) return milliseconds;
  throw new RefitError('REFIT_INTERNAL', `${REQUESTS} requests by ${client} failed: ${stderr.trim()}`);
}
