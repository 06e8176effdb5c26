/** The shades of the steps that agents report in the status of a signal. */
import type { StepShade } from '../../cli/contract/session-dialect.ts';
import type { SignalStatus } from '../../signal/names.ts';

export const SIGNAL_STEPS: ReadonlyMap<string, StepShade> = new Map<SignalStatus, StepShade>([
  ['Downloading', 'download'],
  ['Cordoning', 'drain'],
  ['ApplyingUpdate', 'apply'],
  ['Restart', 'restart'],
  ['UnCordoning', 'uncordon'],
  ['RollingBack', 'rollBack'],
]);
