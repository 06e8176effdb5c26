/** The parts that all tests of an update's steps use: situations of hosts, and the expected steps. */
import { expect, test } from 'vitest';
import { nextStep } from '../../../src/agent/next-step.ts';
import type { StepInput } from '../../../src/agent/step-input.ts';
import { OLD, running, signalAt, situation, third } from '../builders/agent-situations.ts';

export const oldAgain = running(OLD, third);

export const report = (status: string, more: object = {}): object => ({
  kind: 'report',
  status,
  ...more,
});

export const failure = (reason: unknown, more: object = {}): object =>
  report('Failed', { reason, ...more });

export const LOST = failure('why', { rolledBack: false });

export const says = (text: string): unknown => expect.stringContaining(text);

export type Row = [
  situation: string,
  status: string | undefined,
  input: Partial<StepInput>,
  step: object,
];

export const check = (rows: Row[]): void => {
  test.each(rows)('%s', (_name, status, more, step) =>
    expect(nextStep(situation({ signal: signalAt(status), ...more }))).toEqual(step),
  );
};
