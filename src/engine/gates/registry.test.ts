/** Tests which gates are evaluated, and in which order. */
import { describe, expect, test } from 'vitest';
import { input } from '../../../test/support/builders/gate-inputs.ts';
import type { EndpointHealth } from '../model/snapshot.ts';
import { AFTER_TARGET, BEFORE_ROLLOUT, BEFORE_TARGET, evaluate } from './registry.ts';
import type { Gate } from './types.ts';

const READY: EndpointHealth = { name: 'c1', ready: true };

describe('the lists', () => {
  const names = (gates: readonly Gate[]): string[] => gates.map(({ name }) => name);

  test('admission asks only the gates that can refuse', () => {
    const given = input('worker', { ready: false });
    expect(evaluate(BEFORE_ROLLOUT, given)).toEqual({ kind: 'pass' });
    expect(names(BEFORE_ROLLOUT)).toEqual(['target-exists', 'platform-supported', 'not-excluded']);
  });

  test('admission gates are asked again before each target', () => {
    expect(names(BEFORE_TARGET)).toEqual(expect.arrayContaining(names(BEFORE_ROLLOUT)));
  });

  test.each([
    ['missing comes before not Ready', { exists: false, ready: false }, 'target-exists'],
    [
      'no platform comes before not Ready',
      { platform: undefined, ready: false },
      'platform-supported',
    ],
    ['not Ready', { ready: false }, 'node-ready'],
  ])('the first gate that does not pass gives the verdict: %s', (_name, facts, gate) => {
    expect(evaluate(BEFORE_TARGET, input('worker', facts))).toMatchObject({ gate });
  });

  test('the verdict is to pass if all gates of a list pass', () => {
    expect(evaluate(BEFORE_TARGET, input('controller', {}, [READY]))).toEqual({ kind: 'pass' });
    expect(evaluate(AFTER_TARGET, input('worker'))).toEqual({ kind: 'pass' });
  });

  test('after the upgrade of a node, Refit repeats the health checks from before the upgrade', () => {
    expect([
      ...names(BEFORE_TARGET).filter((name) => names(AFTER_TARGET).includes(name)),
      'still-healthy',
      'rest-over',
      'hooks-after',
    ]).toEqual(names(AFTER_TARGET).filter((name) => name !== 'version-reached'));
    expect(names(AFTER_TARGET).indexOf('version-reached')).toBe(
      names(AFTER_TARGET).indexOf('node-ready') + 1,
    );
  });
});
