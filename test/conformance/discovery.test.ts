/** Tests the conformance of discovery: the requests with which clients learn what a server supports. */
import { get, type Step } from './harness/case.ts';
import { ANYTHING, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const asking = (...paths: string[]): Step[] => paths.map((path) => get(path));

const definition = widgetDefinition(ANYTHING, { status: ANYTHING }) as { spec: { names: object } };
Object.assign(definition.spec.names, { shortNames: ['wd'], categories: ['all'] });

const testCase = conformance('discovery', [widgetFixture(definition)]);

testCase('health', asking('/readyz', '/livez', '/healthz'));
testCase('a group of custom resources', asking('/apis/$group'));
testCase('a version of custom resources', asking('/apis/$group/v1', '/apis/$group/v1/'));
testCase(
  'groups and versions that are none',
  asking('/apis/$group/v2', '/apis/none.example.com', '/apis/none.example.com/v1'),
);
testCase(
  'a built-in group and its version',
  asking('/apis/coordination.k8s.io', '/apis/coordination.k8s.io/v1'),
);
testCase('a path that is none', asking('/none'));
testCase(
  'a resource that nobody serves, in groups that are and are not',
  asking('/apis/$group/v1/none', '/apis/$group/v1/none/x', '/apis/none.example.com/v1/none'),
);
testCase(
  'kinds of which nothing is there',
  asking(
    '/apis/apps/v1/namespaces/none/deployments',
    '/apis/apps/v1/namespaces/none/daemonsets/none',
    '/apis/discovery.k8s.io/v1/namespaces/none/endpointslices',
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/none',
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/none',
  ),
);
