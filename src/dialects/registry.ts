/** Owns the one list of dialects. */
import type { Dialect } from '../engine/dialect.ts';
import { autopilot } from './autopilot/dialect.ts';

export const DIALECTS: readonly Dialect[] = [autopilot];
