/** Makes, renews and ends silences with version 2 of the API of Alertmanager. */
import { answerFrom, apiUrl, type CheckTools } from '../health/ask-server.ts';
import type { Clock } from '../util/clock.ts';
import { isRecord } from '../util/json.ts';
import { within } from '../util/within.ts';
import {
  filtersOf,
  lastOf,
  type Made,
  ownAmong,
  renewalOf,
  type SilenceRule,
  type Wanted,
} from './silence.ts';

/** Makes the silences in Alertmanager match the wanted state. Rejects with one sentence that contains no secret. */
export interface Alertmanager {
  /**
   * Makes the silence, or renews it if it ends soon. Resolves with the silence, or with undefined if Alertmanager has
   * not reported the id of the silence.
   */
  keep(wanted: Wanted, abort: AbortSignal): Promise<Made | undefined>;
  /** Ends the silence, if there is one. */
  end(wanted: Wanted, abort: AbortSignal): Promise<void>;
  /** Asks the server for its state, and changes nothing. Rejects if it does not answer as Alertmanager does. */
  reach(rule: Pick<SilenceRule, 'url' | 'secretName'>, abort: AbortSignal): Promise<void>;
}

export interface AlertmanagerParts extends CheckTools {
  readonly clock: Clock;
}

const SILENCES = '/api/v2/silences';
const STATUS = '/api/v2/status';
/** Milliseconds that the answer about the state of the server may take. */
const REACH_WITHIN_MS = 10_000;

export function alertmanager(parts: AlertmanagerParts): Alertmanager {
  const { clock } = parts;
  return {
    async keep(wanted, abort) {
      const found = ownAmong(await listed(wanted, parts, abort), wanted);
      const posted = renewalOf(wanted, found, clock.now());
      if (posted === undefined) return lastOf(found);
      const { url, secretName } = wanted.rule;
      const sent = { method: 'POST', body: JSON.stringify(posted) } as const;
      const request = { url: apiUrl(url, SILENCES), secretName, ...sent };
      const answer = await answerFrom(request, parts, abort);
      const id = isRecord(answer) ? answer['silenceID'] : undefined;
      return typeof id === 'string' ? { ...posted, id } : undefined;
    },
    async end(wanted, abort) {
      const { url, secretName } = wanted.rule;
      for (const { id } of ownAmong(await listed(wanted, parts, abort), wanted)) {
        const address = apiUrl(url, `/api/v2/silence/${encodeURIComponent(id)}`);
        await answerFrom({ url: address, secretName, method: 'DELETE' }, parts, abort);
      }
    },
    async reach({ url, secretName }, abort) {
      const address = apiUrl(url, STATUS);
      const late = new Error(`${address.host} gave no answer within ${REACH_WITHIN_MS / 1000} s`);
      const limit = { ms: REACH_WITHIN_MS, late, stop: abort };
      const answer = await within(
        clock,
        limit,
        async (stop) => await answerFrom({ url: address, secretName }, parts, stop),
      );
      if (!isRecord(answer) || !isRecord(answer['versionInfo']))
        throw new Error(`${address.host} did not answer like Alertmanager`);
    },
  };
}

async function listed(
  wanted: Wanted,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<readonly unknown[]> {
  const { url, secretName } = wanted.rule;
  const filters = filtersOf(wanted).map((filter) => ['filter', filter] as const);
  const address = apiUrl(url, SILENCES, filters);
  const answer = await answerFrom({ url: address, secretName }, tools, abort);
  if (!Array.isArray(answer)) throw new Error(`${address.host} did not answer like Alertmanager`);
  return answer as readonly unknown[];
}
