"""The metrics of the gateway."""

from dragoman.gateway.metrics import Metrics


def test_calls_are_counted_by_server_and_outcome():
    metrics = Metrics()
    for seconds, outcome in ((0.005, "ok"), (0.2, "tool-error"), (40.0, "timeout")):
        metrics.count_call('a"b', outcome, seconds)
    metrics.lost["c"] += 1
    metrics.refused[401] += 2
    metrics.limited = 3
    lines = metrics.text({}, {"memory": {"d": {"hit": 5}}}, clients=4).splitlines()
    name = 'server="a\\"b"'
    assert f'dragoman_calls_total{{{name},outcome="ok"}} 1' in lines
    assert f'dragoman_calls_total{{{name},outcome="tool-error"}} 1' in lines
    assert f'dragoman_calls_total{{{name},outcome="timeout"}} 1' in lines
    assert f'dragoman_call_duration_seconds_bucket{{{name},le="0.005"}} 1' in lines
    assert f'dragoman_call_duration_seconds_bucket{{{name},le="0.25"}} 2' in lines
    assert f'dragoman_call_duration_seconds_bucket{{{name},le="+Inf"}} 3' in lines
    assert f"dragoman_call_duration_seconds_sum{{{name}}} 40.205000" in lines
    assert 'dragoman_server_lost_total{server="c"} 1' in lines
    assert 'dragoman_requests_refused_total{status="401"} 2' in lines
    assert "dragoman_calls_limited_total 3" in lines
    assert "dragoman_clients 4" in lines
    assert 'dragoman_cache_total{server="d",level="memory",result="hit"} 5' in lines
