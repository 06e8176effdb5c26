/**
 * Writes metrics as OpenMetrics 1.0, and decides which scrapers get that format. The names and labels of series are those of the
 * Prometheus text, so a scraper may change between the formats. prom-client has a writer of its own, but it renames counters.
 */

/** A metric as prom-client returns it. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly values: readonly MetricSample[];
}

interface MetricSample {
  readonly value: number;
  /** prom-client has numbers as values of `le`. They are written without a decimal point, as in the Prometheus text. */
  readonly labels: Labels;
  /** The name of the series; undefined if it equals the name of the metric. */
  readonly metricName?: string | undefined;
}

/** An example of what a series has measured. */
interface Exemplar {
  readonly labelSet: Labels;
  readonly value: number;
  /** The time in seconds since the Unix epoch. */
  readonly timestamp?: number | undefined;
}

type Labels = Readonly<Record<string, string | number | undefined>>;

/** The last exemplar of each series. */
export interface Exemplars {
  keep(series: string, labels: Labels, exemplar: Exemplar): void;
  get(series: string, labels: Labels): Exemplar | undefined;
}

export function createExemplars(): Exemplars {
  const bySeries = new Map<string, Exemplar>();
  const keyOf = (series: string, labels: Labels): string =>
    `${series}${labelText(Object.fromEntries(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))))}`;
  return {
    keep: (series, labels, exemplar) => void bySeries.set(keyOf(series, labels), exemplar),
    get: (series, labels) =>
      bySeries.size === 0 ? undefined : bySeries.get(keyOf(series, labels)),
  };
}

export const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
/** The last line of an answer. */
export const OPENMETRICS_END = '# EOF\n';
/** The most characters that the labels of an exemplar may have, with their names. */
const LONGEST_EXEMPLAR = 128;
/** Only these series may have exemplars. */
const MAY_HAVE_EXEMPLAR = /_(?:bucket|total)$/;
const TOTAL = /_total$/;

/**
 * Returns the lines that begin a metric. `names` has the names of all metrics. The name of a counter is written without
 * `_total`, because only its series has this suffix. If a counter cannot follow this rule, it gets the type `unknown`,
 * so that its series keeps its name.
 */
export function openMetricsHead(
  { name, help, type }: Omit<MetricFamily, 'values'>,
  names: ReadonlySet<string>,
): string {
  const short = name.replace(TOTAL, '');
  const isRegular = short !== name && !names.has(short);
  const isUnknown = type === 'counter' && !isRegular;
  const shownName = type === 'counter' && isRegular ? short : name;
  return `# HELP ${shownName} ${escaped(help)}\n# TYPE ${shownName} ${isUnknown ? 'unknown' : type}\n`;
}

/** Returns the lines of the samples, each with `more` labels. */
export function openMetricsSamples(
  { name, type, values }: MetricFamily,
  exemplars: Exemplars,
  more: Labels = {},
): string {
  const mayHaveExemplars = type === 'histogram' || type === 'counter';
  return values
    .map(({ metricName = name, labels, value }) => {
      const isAllowed = mayHaveExemplars && MAY_HAVE_EXEMPLAR.test(metricName);
      const exemplar = isAllowed ? exemplars.get(metricName, labels) : undefined;
      const example = exemplar === undefined ? '' : exemplarText(exemplar);
      return `${metricName}${labelText({ ...labels, ...more })} ${numberText(value)}${example}\n`;
    })
    .join('');
}

function exemplarText({ labelSet, value, timestamp }: Exemplar): string {
  const texts = Object.entries(labelSet).flatMap(([name, text]) => [name, String(text)]);
  const characters = texts.reduce((sum, text) => sum + Array.from(text).length, 0);
  if (characters > LONGEST_EXEMPLAR) return '';
  const at = timestamp === undefined ? '' : ` ${numberText(timestamp)}`;
  return ` # ${labelText(labelSet) || '{}'} ${numberText(value)}${at}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(`${value}`)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function numberText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return `${value}`;
  return value < 0 ? '-Inf' : '+Inf';
}

interface MediaRange {
  readonly type: string;
  readonly version: string | undefined;
  /** How much the client wants this format, from 0 (not at all) to 1. */
  readonly quality: number;
}

const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Returns true if the header `Accept` names OpenMetrics 1.0, and does not prefer the Prometheus text. A wildcard is not enough,
 * because a client that does not know OpenMetrics must get the Prometheus text.
 */
export function wantsOpenMetrics(accept: string): boolean {
  const ranges = rangesIn(accept);
  const named = (type: string, version?: string) =>
    ranges.filter((range) => range.type === type && range.version === version);
  const open = 'application/openmetrics-text';
  const openQuality = qualityIn([named(open, '1.0.0'), named(open)]);
  const textQuality = qualityIn([
    named('text/plain', '0.0.4'),
    named('text/plain'),
    named('text/*'),
    named('*/*'),
  ]);
  return openQuality > 0 && openQuality >= textQuality;
}

/**
 * Returns the highest quality in the first list that is not empty; 0 if all lists are empty. The list of the most
 * specific ranges comes first.
 */
function qualityIn(fromSpecific: readonly (readonly MediaRange[])[]): number {
  const ranges = fromSpecific.find(({ length }) => length > 0) ?? [];
  return Math.max(0, ...ranges.map(({ quality }) => quality));
}

/** Returns the ranges of the header. A range with a malformed quality is left out. */
function rangesIn(accept: string): MediaRange[] {
  // A simple text in quotes means the same without the quotes. Other quoted texts may contain separators, and no
  // scraper sends them.
  const plain = accept.replaceAll(/"([^"\\,;]*)"/g, '$1');
  if (plain.includes('"')) return [];
  return plain.split(',').flatMap((range) => {
    const [type = '', ...rest] = range.split(';').map((part) => part.trim().toLowerCase());
    const parameters = new Map(rest.map(parameterIn));
    const quality = parameters.get('q') ?? '1';
    if (!QUALITY.test(quality)) return [];
    return [{ type, version: parameters.get('version'), quality: Number(quality) }];
  });
}

function parameterIn(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  return at < 0 ? [text, ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}
