/** Shows times in the zone of the viewer, with the time in UTC for everybody who compares them with logs. */

const DATE_AND_TIME = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'medium',
});

interface TimeProps {
  /** An RFC 3339 time, or milliseconds since the Unix epoch. */
  readonly at: string | number;
}

/** Shows the text itself if it is not a time. */
export function Time({ at }: TimeProps) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return <>{at}</>;
  const utc = time.toISOString();
  return (
    <time dateTime={utc} title={`${utc.slice(0, 19).replace('T', ' ')} UTC`}>
      {DATE_AND_TIME.format(time)}
    </time>
  );
}

/** The name of the zone of the viewer, such as `Europe/Berlin`. */
export function zoneOfViewer(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Returns a time in the zone of the viewer in the form `2026-11-20T08:00:00.000`. */
export function localText(at: number): string {
  const minutes = new Date(at).getTimezoneOffset();
  return new Date(at - minutes * 60_000).toISOString().slice(0, 23);
}

/** Returns a duration in words, rounded to seconds, such as `2 min 5 s`. */
export function durationOf(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}
