/** Asks Prometheus for the values of a query, and compares them with the bounds of the check. */
import { isRecord } from '../util/json.ts';
import { scalarText } from '../util/scalar-text.ts';
import { apiUrl, type CheckTools, jsonFrom } from './ask-server.ts';
import type { CheckFinding, MetricCheck } from './checks.ts';
import { clipped, firstOf, type Labels, labelsIn, shownLabels } from './series.ts';

/** One value of the answer. `text` is the value as Prometheus writes it, such as `0.07`, `+Inf` or `NaN`. */
interface Sample {
  readonly labels: Labels;
  readonly text: string;
}

/**
 * Resolves with the result of the check. Rejects if a value is missing or cannot be compared, such as `NaN`, and the check is then unknown.
 */
export async function askMetrics(
  check: MetricCheck,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<CheckFinding> {
  const url = apiUrl(check.url, '/api/v1/query', [['query', check.query]]);
  const answer = await jsonFrom(url, check.secretName, tools, abort);
  const samples = samplesIn(answer, url.host);
  const bad = samples.flatMap((sample) => faultOf(sample, check) ?? []);
  if (bad.length > 0) return { state: 'failing', message: `the value is ${firstOf(bad)}` };
  const odd = samples.filter(({ text }) => Number.isNaN(numberOf(text)));
  if (odd.length > 0) {
    const named = odd.map((sample) => `${clipped(sample.text)}${forLabels(sample)}`);
    throw new Error(`the value is ${firstOf(named)}, which cannot be compared with min and max`);
  }
  const [warning] = warningsIn(answer);
  // Values may be missing. Therefore the check cannot pass, even if all present values are good.
  if (warning !== undefined)
    throw new Error(
      `${url.host} warns that its answer may be incomplete: ${clipped(warning, 160)}`,
    );
  return { state: 'passing', message: goodMessage(samples, check) };
}

function goodMessage(samples: readonly Sample[], check: MetricCheck): string {
  const [first] = samples;
  const bounds = `within ${boundsOf(check)}`;
  if (samples.length === 1 && first !== undefined)
    return `the value is ${clipped(first.text)}, ${bounds}${forLabels(first)}`;
  return `all ${samples.length} values are ${bounds}`;
}

function boundsOf({ min, max }: MetricCheck): string {
  const named = [
    ...(min === undefined ? [] : [`min ${min}`]),
    ...(max === undefined ? [] : [`max ${max}`]),
  ];
  return named.join(' and ');
}

/** Returns for example `0.07, above max 0.01 for job=api`; undefined if the value is good. */
function faultOf(sample: Sample, { min, max }: MetricCheck): string | undefined {
  const value = numberOf(sample.text);
  const text = clipped(sample.text);
  if (max !== undefined && value > max) return `${text}, above max ${max}${forLabels(sample)}`;
  if (min !== undefined && value < min) return `${text}, below min ${min}${forLabels(sample)}`;
  return undefined;
}

function forLabels({ labels }: Sample): string {
  const shown = shownLabels(labels);
  return shown === '' ? '' : ` for ${shown}`;
}

function numberOf(text: string): number {
  if (/^[+-]?Inf$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return text.trim() === '' ? Number.NaN : Number(text);
}

function samplesIn(answer: unknown, host: string): Sample[] {
  const data = isRecord(answer) && answer['status'] === 'success' ? answer['data'] : undefined;
  if (!isRecord(data)) throw new Error(`${host} did not answer like Prometheus`);
  const { resultType, result } = data;
  if (resultType === 'scalar') return [{ labels: {}, text: textOf(result) }];
  if (resultType !== 'vector' || !Array.isArray(result)) {
    const found = clipped(scalarText(resultType) || 'value of no known type');
    throw new Error(`the query returns a ${found}; it must return a vector or a scalar`);
  }
  if (result.length === 0) throw new Error('the query returns no value');
  return result.map((each: unknown) => {
    const { metric, value } = isRecord(each) ? each : {};
    const labels = labelsIn(metric);
    if (value === undefined) {
      const shown = forLabels({ labels, text: '' });
      throw new Error(`the query returns a histogram${shown}; it must return numbers`);
    }
    return { labels, text: textOf(value) };
  });
}

/** Returns the text in `value`, which Prometheus writes as a list of a time and a text. */
function textOf(value: unknown): string {
  const text: unknown = Array.isArray(value) ? value[1] : undefined;
  return typeof text === 'string' ? text : 'no number';
}

function warningsIn(answer: unknown): string[] {
  const warnings = isRecord(answer) ? answer['warnings'] : undefined;
  if (!Array.isArray(warnings)) return [];
  return warnings.filter((each): each is string => typeof each === 'string');
}
