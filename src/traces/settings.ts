/** Reads the environment variables that OpenTelemetry defines for exporters. Without an endpoint nothing is exported. */
import type { Environment } from '../http/proxy-choice.ts';
import { RefitError } from '../util/errors.ts';
import { ownMember } from '../util/own-member.ts';
import type { Attributes } from './otlp.ts';

export interface TraceSettings {
  readonly url: URL;
  /** The headers of each request. They may contain secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** The file with certificate authorities in PEM; undefined if the authorities of the system are used. */
  readonly certificate?: string | undefined;
  readonly resource: Attributes;
}

/**
 * The result of reading the environment: the settings for sending traces, or the reason why no traces are sent although
 * an endpoint is set.
 */
export interface TraceChoice {
  readonly settings?: TraceSettings | undefined;
  readonly problem?: string | undefined;
}

const PREFIX = 'OTEL_EXPORTER_OTLP_';
const PATH = '/v1/traces';
/** The variable for traces takes precedence over the variable for all signals. */
const ENDPOINTS = [`${PREFIX}TRACES_ENDPOINT`, `${PREFIX}ENDPOINT`] as const;
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const IN_HEADER = /^[\x20-\x7e]+$/;
/** The headers that Refit itself sets on each request. The environment must not set them. */
const OWN_HEADERS = ['content-type', 'content-length', 'host', 'user-agent', 'transfer-encoding'];

/**
 * Returns the settings for sending traces. Returns neither settings nor a problem if the environment does not ask for
 * traces. Throws REFIT_USAGE for an invalid value.
 */
export function traceChoice(environment: Environment): TraceChoice {
  const given = (name: string): string => ownMember(environment, name)?.trim() ?? '';
  const named = (end: string): string => given(`${PREFIX}TRACES_${end}`) || given(PREFIX + end);
  const variable = ENDPOINTS.find((name) => given(name) !== '');
  const isOff =
    given('OTEL_SDK_DISABLED').toLowerCase() === 'true' || given('OTEL_TRACES_EXPORTER') === 'none';
  if (variable === undefined || isOff) return {};
  if (named('PROTOCOL') === 'grpc') {
    const problem = `${PREFIX}PROTOCOL is "grpc"; Refit sends http/json, which collectors take on port 4318`;
    return { problem };
  }
  const url = urlIn(variable, given(variable));
  if (variable === `${PREFIX}ENDPOINT`) url.pathname = `${url.pathname.replace(/\/$/, '')}${PATH}`;
  const headersIn = [`${PREFIX}TRACES_HEADERS`, `${PREFIX}HEADERS`].find((name) => given(name));
  const resource = pairsIn('OTEL_RESOURCE_ATTRIBUTES', given('OTEL_RESOURCE_ATTRIBUTES'));
  const service = given('OTEL_SERVICE_NAME') || (resource.get('service.name') ?? 'refit');
  return {
    settings: {
      url,
      headers: headersIn === undefined ? {} : headersOf(headersIn, given(headersIn)),
      certificate: named('CERTIFICATE') || undefined,
      resource: { ...Object.fromEntries(resource), 'service.name': service },
    },
  };
}

function urlIn(variable: string, text: string): URL {
  if (/^https?:\/\/[^\s@]+$/i.test(text) && URL.canParse(text)) return new URL(text);
  // The value is not shown, because it may contain a password.
  throw new RefitError(
    'REFIT_USAGE',
    `${variable} must be a URL that begins with http:// or https:// and contains no credentials, such as http://collector.example.com:4318`,
  );
}

function headersOf(variable: string, text: string): Record<string, string> {
  const pairs = [...pairsIn(variable, text)].map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  for (const [name, value] of pairs) {
    if (!HEADER_NAME.test(name) || OWN_HEADERS.includes(name) || !IN_HEADER.test(value))
      throw new RefitError(
        'REFIT_USAGE',
        `${variable} has a header that cannot be sent; use NAME=VALUE, without the headers ${OWN_HEADERS.join(', ')}`,
      );
  }
  return Object.fromEntries(pairs);
}

/** Returns the pairs of a list such as `a=1,b=2`. Names and values may be percent-encoded. */
function pairsIn(variable: string, text: string): Map<string, string> {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  return new Map(
    parts.map((part, index) => {
      const at = part.indexOf('=');
      try {
        if (at > 0)
          return [
            decodeURIComponent(part.slice(0, at).trim()),
            decodeURIComponent(part.slice(at + 1).trim()),
          ];
      } catch {
        // The error below says what is expected.
      }
      throw new RefitError(
        'REFIT_USAGE',
        `${variable}: entry ${index + 1} must be NAME=VALUE, with percent-encoding for special characters`,
      );
    }),
  );
}
