/** Owns keeping a controller registered: its object is created, and put right whenever it, or the service, says something else. */
import type { ControlNode } from '../../signal/names.ts';
import { backoffDelay } from '../../util/backoff.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { changeOrTimeout, type RegisteredObject } from '../object/signal-object.ts';
import { type ControllerFacts, missingFields, withTrueStatus } from './control-node.ts';

export interface RegistrationParts {
  /** Followed by somebody else; where the API server does not know its kind yet, it is not known until it does. */
  readonly object: RegisteredObject;
  /** Undefined while nothing tells which part this host has in the cluster. */
  readonly describe: () => Promise<ControllerFacts | undefined>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** Nothing announces that a service which says nothing begins to answer, or that another version was started by hand. */
const UNKNOWN_POLL_MS = 1_000;
const KNOWN_POLL_MS = 60_000;
const RETRY = { base: 50, cap: 10_000 };

/** Works until `stop` aborts; never rejects, since an agent can do its work with an object that is not quite right. */
export async function keepRegistered(parts: RegistrationParts, stop: AbortSignal): Promise<void> {
  const { object, clock, random, log } = parts;
  for (let failures = 0; !stop.aborted; ) {
    const seen = object.version;
    try {
      const pauseMs = await putRight(parts);
      failures = 0;
      if (pauseMs !== 0) await changeOrTimeout(object, seen, pauseMs, { clock, stop });
    } catch (error) {
      const pauseMs = backoffDelay(failures++, { ...RETRY, random });
      log.warn('registration is tried again', { reason: messageOf(error), pauseMs });
      await changeOrTimeout(object, seen, pauseMs, { clock, stop });
    }
  }
}

/** One write at most; returns the milliseconds to pause unless the object changes, undefined for no limit. */
async function putRight({ object, describe, log }: RegistrationParts): Promise<number | undefined> {
  if (!object.isKnown) return undefined;
  const facts = await describe();
  if (facts === undefined) return UNKNOWN_POLL_MS;
  const newest: ControlNode | undefined = object.newest;
  const missing = missingFields(newest, facts);
  if (missing !== undefined) {
    await object.claim(missing);
    log.info(newest === undefined ? 'registered' : 'registration put right', { mode: facts.mode });
    return 0;
  }
  const changed = newest && withTrueStatus(newest, facts);
  if (changed === undefined) return KNOWN_POLL_MS;
  await object.writeStatus(changed);
  log.info('status put right', { ...changed.status });
  return 0;
}
