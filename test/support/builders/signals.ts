/**
 * The annotations that the leaders and agents of k0s Autopilot write, for tests. Refit's own annotations are not
 * included.
 */
import { encodeSignal, type SignalCommand } from '../../../src/signal/annotations.ts';
import { later } from '../clock/times.ts';
import { SHA256 } from './plans.ts';

export interface OriginalSignal {
  readonly planId?: string;
  /** RFC 3339. */
  readonly created?: string;
  /** The status word; absent where the agent has not answered. */
  readonly status?: string;
  /** The time at which the agent answered, in RFC 3339. */
  readonly timestamp?: string;
  readonly command?: Partial<SignalCommand>;
}

export function buildSignal(signal: OriginalSignal = {}): Record<string, string> {
  const {
    planId = 'id1',
    created = later(1000),
    status,
    timestamp = later(2000),
    command,
  } = signal;
  return encodeSignal({
    planId,
    created,
    command: {
      id: 0,
      kind: 'k0supdate',
      url: 'https://example.com/k0s',
      version: 'v1.36.3+k0s.2',
      sha256: SHA256,
      ...command,
    },
    ...(status === undefined ? {} : { status: { status, timestamp } }),
  });
}
