/** Keeps a controller registered: creates its ControlNode and corrects it when it differs from the service. */
import type { ControlNode } from '../../signal/names.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { OwnObject } from '../object/own-object.ts';
import { keepDoing } from '../object/signal-object.ts';
import { type ControllerFacts, missingFields, withTrueStatus } from './control-node.ts';

export interface RegistrationParts extends Tools {
  /** Somebody else follows it; it stays unknown until the API server knows its kind. */
  readonly object: OwnObject;
  /** Undefined while the role of this host is unknown. */
  readonly describe: () => Promise<ControllerFacts | undefined>;
}

/** Polled, because nothing signals that the service answers, or that another version was started. */
const UNKNOWN_POLL_MS = 1_000;
const KNOWN_POLL_MS = 60_000;
const RETRY = { base: 50, cap: 10_000 };

/** Works until `stop` aborts; never rejects, because an agent can work with an outdated ControlNode. */
export async function keepRegistered(parts: RegistrationParts, stop: AbortSignal): Promise<void> {
  const tell = (error: unknown, pauseMs: number): void =>
    parts.log.warn('the registration is retried', { reason: messageOf(error), pauseMs });
  await keepDoing(async () => await updateRegistration(parts), tell, RETRY, parts, stop);
}

/** One write at most; returns the milliseconds to pause unless the object changes, undefined for no limit. */
async function updateRegistration({ object, describe, log }: RegistrationParts): Promise<number | undefined> {
  if (!object.isKnown) return undefined;
  const facts = await describe();
  if (facts === undefined) return UNKNOWN_POLL_MS;
  const newest: ControlNode | undefined = object.newest;
  const missing = missingFields(newest, facts);
  if (missing !== undefined) {
    await object.claim(missing);
    log.info(newest === undefined ? 'registered' : 'registration updated', { mode: facts.mode });
    return 0;
  }
  const changed = newest && withTrueStatus(newest, facts);
  if (changed === undefined) return KNOWN_POLL_MS;
  await object.writeStatus(changed);
  log.info('status updated', { ...changed.status });
  return 0;
}
