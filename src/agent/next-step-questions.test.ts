/** Tests which questions an agent asks the host and the cluster before it decides its next step. */
import { describe, expect, test } from 'vitest';
import {
  after,
  airgap,
  before,
  forced,
  journalAt,
  key,
  NEW,
  OLD,
  running,
  signalAt,
  silent,
} from '../../test/support/builders/agent-situations.ts';
import type { SignalData } from '../signal/annotations.ts';
import { IDLE, type Journal } from './journal.ts';
import { asksForCordon, asksForService, asksWhoCordons, isAtRest } from './next-step.ts';

const oldRuns = running(OLD, before);
const newRuns = running(NEW, after);

describe('nobody is asked what cannot matter', () => {
  const done = journalAt('proven');
  test.each<[string, SignalData | undefined, Journal, boolean]>([
    ['no signal', undefined, IDLE, true],
    ['a signal that is over', signalAt('Completed'), IDLE, true],
    ['a new signal', key, IDLE, false],
    ['work to clean up after', signalAt('Completed'), done, false],
  ])('whether the agent is at rest: %s', (_name, signal, journal, expected) =>
    expect(isAtRest(signal, journal)).toBe(expected),
  );

  test.each<[string, SignalData, Journal, boolean]>([
    ['Cordoning', signalAt('Cordoning'), journalAt('ready'), true],
    ['Cordoning, way made', signalAt('Cordoning'), journalAt('ready', { drain: 'done' }), false],
    ['Downloading', signalAt('Downloading'), journalAt('ready'), false],
    ['ApplyingUpdate', signalAt('ApplyingUpdate'), journalAt('ready'), false],
    ['UnCordoning', signalAt('UnCordoning'), done, true],
    ['Restart', signalAt('Restart'), done, false],
    ['no status yet', key, journalAt('ready'), false],
    [
      'UnCordoning, before the new version is proven',
      signalAt('UnCordoning'),
      journalAt('restarted'),
      false,
    ],
    [
      'another signal',
      signalAt('Cordoning', { ...key, created: 'later' }),
      journalAt('ready'),
      false,
    ],
    ['over', signalAt('Completed'), done, false],
    ['nothing begun', signalAt('Cordoning'), IDLE, false],
  ])('whether the agent asks who cordons: %s', (_name, signal, journal, expected) =>
    expect(asksWhoCordons(signal, journal)).toBe(expected),
  );

  test.each<[string, SignalData, Journal, boolean]>([
    ['for what runs', key, IDLE, true],
    ['forced', forced, IDLE, false],
    ['a bundle', airgap, IDLE, false],
    ['already at work', key, done, false],
  ])('whether the agent asks for its own cordon: %s', (_name, signal, journal, expected) => {
    expect(asksForCordon(signal, journal, newRuns)).toBe(expected);
    expect(asksForCordon(signal, journal, oldRuns)).toBe(false);
    expect(asksForCordon(signal, journal, silent)).toBe(false);
  });

  test('the service is asked for an update, and never for a bundle', () => {
    expect(asksForService(key, IDLE)).toBe(true);
    expect(asksForService(key, done)).toBe(true);
    expect(asksForService(airgap, IDLE)).toBe(false);
    const bundle: Journal = { phase: 'wanted', work: { signal: airgap }, spent: {} };
    expect(asksForService(airgap, bundle)).toBe(false);
    expect(asksForService(key, bundle)).toBe(false);
  });

  test('without a signal the service is asked while an update is under way, and the cordon never', () => {
    expect([asksForService(undefined, IDLE), asksForService(undefined, done)]).toEqual([
      false,
      true,
    ]);
    expect(asksForCordon(undefined, IDLE, newRuns)).toBe(false);
    expect(asksForCordon(undefined, IDLE, silent)).toBe(false);
  });
});
