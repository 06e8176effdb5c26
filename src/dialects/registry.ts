/** Defines the dialects of `refit controller`. */
import type { Dialect } from '../engine/contract/dialect.ts';
import { autopilot } from './autopilot/plan/autopilot-dialect.ts';

/** The dialects whose plans `refit controller` carries out. The other dialects have their own executables. */
export const CONTROLLER_DIALECTS: readonly Dialect[] = [autopilot];
