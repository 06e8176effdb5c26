/** Checks whether a URL of the control plane answers 200. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

/** Reports whether the URL answers 200. Returns false also if no answer comes in time. */
export type Probe = (url: string) => Promise<boolean>;

export interface ProbeIdentity {
  /** All in PEM. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const TIMEOUT_MS = 5_000;

/** A probe that authenticates as `identity` when a server asks. */
export function probeAs(identity: ProbeIdentity): Probe {
  return async (url) =>
    await new Promise((resolve) => {
      const options = { agent: false, timeout: TIMEOUT_MS } as const;
      const request = url.startsWith('https:')
        ? requestHttps(url, { ...options, ...identity })
        : requestHttp(url, options);
      request.on('response', (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      request.on('timeout', () => request.destroy());
      request.on('error', () => resolve(false));
      request.end();
    });
}
