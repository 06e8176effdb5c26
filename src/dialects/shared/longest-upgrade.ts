/** Says up to which duration an upgrade lets Refit predict the duration of the next one. */

/**
 * The maximum duration of an upgrade, in milliseconds, from which the next duration is predicted. A longer duration is wrong,
 * or the upgrade waited for people.
 */
export const LONGEST_UPGRADE_MS = 24 * 60 * 60 * 1000;
