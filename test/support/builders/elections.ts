/**
 * Makes candidates of an election for tests. They use an in-memory lease server, a clock that the test moves, and
 * connections that the test can cut.
 */
import { onTestFinished } from 'vitest';
import {
  createElection,
  type Election,
  type ElectionOptions,
} from '../../../src/kube/election/election.ts';
import { TransportError } from '../../../src/kube/status-error.ts';
import { type LeaseServer, type Link, leaseClient } from '../../faults/lease-server.ts';
import type { FakeClock } from '../clock/fake-clock.ts';

export const PLACE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };
export const TIMES = { leaseDurationMs: 60_000, renewDeadlineMs: 15_000, retryPeriodMs: 5_000 };

export const direct: Link = async (apply) => await Promise.resolve().then(apply);

interface Candidate {
  readonly election: Election;
  /** The numbers of the terms that began, and `end` for each time at which the candidate lost its term. */
  readonly heard: (number | 'end')[];
  stop(reason?: unknown): Promise<void>;
}

export function stand(
  server: LeaseServer,
  clock: FakeClock,
  identity: string,
  options: Partial<ElectionOptions> = {},
): Candidate {
  const client = leaseClient(server, direct);
  const election = createElection({
    client,
    ...PLACE,
    ...TIMES,
    identity,
    clock,
    random: () => 0.5,
    ...options,
  });
  const heard: (number | 'end')[] = [];
  election.onChange((term) => heard.push(term?.number ?? 'end'));
  const stop = new AbortController();
  const running = election.run(stop.signal);
  const end = async (reason?: unknown): Promise<void> => {
    stop.abort(reason);
    await clock.runUntil(running);
  };
  onTestFinished(async () => await end());
  return { election, heard, stop: end };
}

/** Returns a connection that the test can cut. While it is cut, every request fails at its deadline without an answer. */
export function cuttable(clock: FakeClock): {
  link: Link;
  cut: (how: 'request' | 'answer' | undefined) => void;
} {
  let lost: 'request' | 'answer' | undefined;
  const link: Link = async (apply, { deadlineMs = 30_000 }) => {
    if (lost !== 'request') {
      const answer = await direct(apply, {}, true);
      if (lost === undefined) return answer;
    }
    await new Promise<void>((resolve) => void clock.schedule(deadlineMs, resolve));
    throw new TransportError('lost');
  };
  return {
    link,
    cut: (how) => {
      lost = how;
    },
  };
}
