/**
 * Compares the Kubernetes client of Refit with the official client and with a bare loop. All of them send the same
 * requests, alternately.
 */
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { run } from '../../tools/controlplane/run.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { median } from '../statistics.ts';

const PROGRAM = join(import.meta.dirname, '..', 'time-requests.ts');
const REQUESTS = 200;
/** An odd number, so that the median is a measured value. */
const ROUNDS = 7;

/**
 * The median duration of a GET of each client, in milliseconds. Refit and the bare loop take turns in one process, and
 * the official client has its own process.
 */
export interface Round {
  readonly refit: number;
  readonly bare: number;
  readonly clientNode: number;
}

/** Compares the clients. `kubeconfig` is the path of a kubeconfig for a real API server with TLS. */
export async function compareClients(kubeconfig: string, abort: AbortSignal): Promise<Findings> {
  const rounds: Round[] = [];
  const timePair = async () => await time(['refit', 'bare'], kubeconfig, abort);
  const timeOther = async () => await time(['client-node'], kubeconfig, abort);
  for (let index = 0; index < ROUNDS; index++) {
    // The order changes with each round, so that a slow machine affects all clients in the same way.
    const early = index % 2 === 0 ? await timePair() : undefined;
    const [clientNode = 0] = await timeOther();
    const [refit = 0, bare = 0] = early ?? (await timePair());
    rounds.push({ refit, bare, clientNode });
  }
  return clientFindings(rounds);
}

export function clientFindings(rounds: readonly Round[]): Findings {
  const medianOf = (value: (round: Round) => number): number => median(rounds.map(value));
  const [theirs, ours, least] = (['clientNode', 'refit', 'bare'] as const).map(
    (client) => `${formatNumber(medianOf((round) => round[client]))} ms`,
  );
  const asked = `median of ${REQUESTS} GETs; medians of ${rounds.length}`;
  return {
    figures: [
      {
        key: 'client.requestRatioVsBare',
        value: medianOf(({ refit, bare }) => refit / bare),
        unit: '×',
        goal: { bound: 'most', limit: 1.15 },
        madeOf: `${ours} by Refit ÷ ${least} by a bare loop over one kept connection, ${asked}`,
      },
      {
        key: 'client.requestRatioVsClientNode',
        value: medianOf(({ refit, clientNode }) => clientNode / refit),
        unit: '×',
        goal: { bound: 'least', limit: 3 },
        madeOf: `${theirs} by @kubernetes/client-node ÷ ${ours} by Refit, ${asked}`,
      },
    ],
    details: [
      {
        title: `The median of ${REQUESTS} GETs one after the other, in milliseconds`,
        header: ['ROUND', 'BARE LOOP', 'Refit', '@kubernetes/client-node'],
        rows: rounds.map(({ bare, refit, clientNode }, index) =>
          [index + 1, bare, refit, clientNode].map(formatNumber),
        ),
      },
    ],
  };
}

async function time(
  clients: readonly string[],
  kubeconfig: string,
  abort: AbortSignal,
): Promise<number[]> {
  const args = [PROGRAM, clients.join(','), kubeconfig, String(REQUESTS)];
  const { ok, stdout, stderr } = await run(process.execPath, args, { abort });
  const medians = stdout.trim().split(' ').map(Number);
  if (ok && medians.every((milliseconds) => milliseconds > 0)) return medians;
  throw new RefitError(
    'REFIT_INTERNAL',
    `${REQUESTS} requests by ${clients.join(' and ')} failed: ${stderr.trim()}`,
  );
}
