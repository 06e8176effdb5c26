/** Creates the exporter of traces as the environment variables define it. */
import { readFileSync } from 'node:fs';
import manifest from '../../package.json' with { type: 'json' };
import type { Environment } from '../http/proxy-choice.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { createTraceExporter, type TraceExporter } from '../traces/exporter.ts';
import { traceChoice } from '../traces/settings.ts';
import { messageOf, RefitError } from '../util/errors.ts';
import { printableUrl } from '../util/printable-url.ts';
import type { Tools } from '../util/tools.ts';

/** Throws REFIT_USAGE if a variable about traces is wrong. */
export function checkTraceSettings(environment: Environment): void {
  const { certificate } = traceChoice(environment).settings ?? {};
  if (certificate !== undefined) authorityIn(certificate);
}

/** Returns the exporter; undefined if the environment names no collector. Throws REFIT_USAGE if a variable is wrong. */
export function traceExporterOf(
  environment: Environment,
  parts: Tools & { readonly metrics: Metrics },
): TraceExporter | undefined {
  const { settings, problem } = traceChoice(environment);
  if (problem !== undefined) parts.log.warn('no traces are sent', { problem });
  if (settings === undefined) return undefined;
  const { certificate, ...rest } = settings;
  parts.metrics.offerExemplars();
  parts.log.info('traces are sent', { address: printableUrl(settings.url.href) });
  return createTraceExporter({
    ...rest,
    ...parts,
    version: manifest.version,
    authority: certificate === undefined ? undefined : authorityIn(certificate),
    environment,
  });
}

function authorityIn(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new RefitError(
      'REFIT_USAGE',
      `OTEL_EXPORTER_OTLP_CERTIFICATE names a file that cannot be read: ${messageOf(error)}`,
    );
  }
}
