/** Runs `refit history`: reads the NodeRollouts and prints the last runs of each plan. */
import { nodeRollouts } from '../../api/kinds.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { ConnectionFlags } from '../options.ts';
import { connect, type SessionParts } from '../status/status-session.ts';
import { fullNameOf } from '../status/text.ts';
import { historyLines, historyOf, isHistoryOf, type PlanHistory } from './history.ts';

interface HistoryFlags extends ConnectionFlags {
  readonly output?: 'text' | 'json';
}

type Parts = Pick<SessionParts, 'clock' | 'output' | 'abort'>;

/** Prints the runs. Rejects with REFIT_CONTROL if `plan` is given and has no NodeRollout. */
export async function showHistory(
  plan: string | undefined,
  flags: HistoryFlags,
  parts: Parts,
): Promise<void> {
  using client = await connect(flags, 'refit-history');
  const { items } = await client
    .listAll(nodeRollouts, { abort: parts.abort })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
      throw new RefitError(
        'REFIT_NO_CRD',
        'the cluster does not have the kind NodeRollout, so it records no runs',
        {
          hint: '`refit kubeadm` works without it, and `refit status` shows its plan; for other plans, `refit install controller`, `cattle` or `capi` prints the definition',
          cause: error,
        },
      );
    });
  const shown = chosenOf(items.map(historyOf), plan);
  const { output, clock } = parts;
  output.write(
    flags.output === 'json'
      ? `${JSON.stringify({ plans: shown }, undefined, 2)}\n`
      : `${historyLines(shown, clock.now(), output).join('\n')}\n`,
  );
}

function chosenOf(all: readonly PlanHistory[], plan: string | undefined): readonly PlanHistory[] {
  if (plan === undefined) return all;
  const chosen = all.filter((each) => isHistoryOf(each, plan));
  if (chosen.length > 0) return chosen;
  const known = all.length === 0 ? '' : `; there is ${listed(all.map(fullNameOf))}`;
  throw new RefitError('REFIT_CONTROL', `there is no NodeRollout of a plan ${plan}${known}`, {
    hint: 'see all with `refit history`',
  });
}
