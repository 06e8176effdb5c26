/** Owns when work may start: windows that recur in a time zone, and stretches of time in which nothing may. */

/** Open from `startMinute` on each of `days`, for `lengthMs` that really pass, whatever the clocks on the wall do meanwhile. */
export interface MaintenanceWindow {
  /** The days on which it opens, 1 for Monday to 7 for Sunday; every day where there is none. */
  readonly days: readonly number[];
  /** Minutes on the wall clock since midnight, below 1440. */
  readonly startMinute: number;
  /** Milliseconds; at most a week. */
  readonly lengthMs: number;
  /** Name of an IANA zone, such as `Europe/Berlin`. */
  readonly timeZone: string;
}

/** Milliseconds since the Unix epoch; over at `to`. */
export interface Blackout {
  readonly from: number;
  readonly to: number;
}
