/** Conformance of what clients ask a server about itself. */
import { type Case, get } from './harness/case.ts';
import { ANYTHING, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const asking = (...paths: string[]): Case => ({ name: paths.join(' '), steps: paths.map((path) => get(path)) });

const cases: readonly Case[] = [
  asking('/readyz', '/livez', '/healthz'),
  asking('/apis/$group'),
  asking('/apis/$group/v1'),
  asking('/apis/$group/v1/'),
  asking('/apis/$group/v2', '/apis/none.example.com', '/apis/none.example.com/v1'),
  asking('/apis/coordination.k8s.io', '/apis/coordination.k8s.io/v1'),
  asking('/none'),
];

const definition = widgetDefinition(ANYTHING, { status: ANYTHING }) as { spec: { names: object } };
Object.assign(definition.spec.names, { shortNames: ['wd'], categories: ['all'] });

conformance('discovery', cases, [widgetFixture(definition)]);
